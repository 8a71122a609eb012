"""Settings of the tests: those of the product, on a data folder of their own for each process."""

import atexit
import os
import shutil
import tempfile

_HOME = tempfile.mkdtemp(prefix="contextapp-test-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
os.environ["CONTEXTAPP_HOME"] = _HOME
# Playwright keeps an event loop in the thread of the tests, which Django takes for asynchronous code.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

from contextapp.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
