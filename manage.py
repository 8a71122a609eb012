#!/usr/bin/env python
"""Django's command line."""

import os

from contextapp.command_line import main

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextapp.settings")
    # A command needs one connection. Without a pool, a refused connection is reported immediately.
    os.environ.setdefault("CONTEXTAPP_DB_POOL", "0")
    main()
