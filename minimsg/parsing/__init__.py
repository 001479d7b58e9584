"""Model text to segments. `PARSERS` names every format; add one with a module and a line."""

PARSERS = {"none": "minimsg.parsing.segments.PlainParser"}
