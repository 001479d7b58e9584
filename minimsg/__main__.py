"""`python -m minimsg`: the same as the command `minimsg`."""

from minimsg.cli.main import main

main()
