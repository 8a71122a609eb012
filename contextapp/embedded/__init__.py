"""The programs that `make run` starts: embedded Postgres and Valkey, web server, worker and scheduler.

Nothing here imports Django, so that the supervisor uses little memory.
"""
