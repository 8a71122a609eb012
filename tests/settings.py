"""Settings of the tests: those of the product, on a data folder of their own for each pytest process.

A server that a test starts runs on these too, and shares the folder by CONTEXTAPP_TEST_HOME.
"""

import atexit
import os
import shutil
import tempfile

os.environ["CONTEXTAPP_HOME"] = os.environ.get("CONTEXTAPP_TEST_HOME", "")
if not os.environ["CONTEXTAPP_HOME"]:
    os.environ["CONTEXTAPP_HOME"] = tempfile.mkdtemp(prefix="contextapp-test-")
    atexit.register(shutil.rmtree, os.environ["CONTEXTAPP_HOME"], ignore_errors=True)
os.environ["CONTEXTAPP_SECRET_KEY"] = "of the tests"
# No test asks a real model: one that wants a summariser names CONTEXTAPP_ANTHROPIC_API_KEY itself.
os.environ.pop("ANTHROPIC_API_KEY", None)
# Playwright keeps an event loop in the thread of the tests, which Django takes for asynchronous code.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

from contextapp.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
