"""Settings of the tests, with a temporary data folder for each pytest process.

Servers that a test starts use these settings too; CONTEXTAPP_TEST_HOME makes them share the folder.
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
os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)  # workers of pytest-xdist inherit the folder of their parent
# Tests never call a real model. Those that need a summarizer set CONTEXTAPP_ANTHROPIC_API_KEY.
os.environ.pop("ANTHROPIC_API_KEY", None)
# Playwright runs an event loop in the thread of the tests, which Django mistakes for asynchronous code.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

from contextapp.settings import *  # noqa: F403

CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 1
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
