"""What `make run` starts on one machine: its own Postgres and Valkey, the web server and the worker.

Nothing here imports Django, so that the process that looks after the others stays small.
"""
