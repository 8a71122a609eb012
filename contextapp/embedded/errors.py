"""The error of everything that starts or keeps a process."""


class StartError(Exception):
    """Something that the person who typed the command can repair. Its text is one line and says how."""
