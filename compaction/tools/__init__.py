"""Tool calls and their outputs.

`actions` determines what a call does, `outcomes` and `failures` whether it succeeded, `paths` which names
mean the same file, and `usage` what tools add to a context.
"""
