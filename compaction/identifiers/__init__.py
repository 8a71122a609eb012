"""The identifiers that a text mentions, which later messages may need again.

`extract` defines what counts as one. `runs` and `texts` keep what was found: each text is scanned once.
"""
