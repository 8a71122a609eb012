"""The error of programs that do not start."""


class StartError(Exception):
    """A problem that the user can fix. The message is one line and explains how."""
