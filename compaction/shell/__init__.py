"""Shell commands of agents.

`syntax` splits a command line into pipelines of words. `effects` and `reads` determine what a command changes
and which files it shows; `programs` lists the programs that print files. `runners` recognizes commands that
run tests, and `chains` determines which failures a later command settles.
"""
