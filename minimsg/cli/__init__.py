"""The `minimsg` command: one file a verb."""
