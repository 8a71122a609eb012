"""Django settings, read from the environment. `docs/reference/configuration.md` lists the variables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dj_database_url
from csp.constants import NONE, SELF

from contextapp import env, queues
from contextapp.blob_storage import blob_storage
from contextapp.embedded.home import broker_url, database_url
from contextapp.logs import logging_settings
from contextapp.openapi import openapi_settings
from contextapp.schedule import beat_schedule

BASE_DIR = env.ROOT
HOME = env.home()
DEBUG = env.flag("CONTEXTAPP_DEBUG")
VERSION = "0.1.0"


def secret_key() -> str:
    """Return the key that signs cookies: from the environment, else from the data folder.

    Management commands such as `makemigrations` need no persistent key, so they use a random one.
    """
    if key := env.text("CONTEXTAPP_SECRET_KEY"):
        return key
    if (file := HOME / "secret-key").is_file():
        return file.read_text().strip()
    if env.flag("CONTEXTAPP_REQUIRE_SECRET_KEY"):
        raise env.InvalidVariable("CONTEXTAPP_SECRET_KEY is not set.")
    return os.urandom(32).hex()


SECRET_KEY = secret_key()
ALLOWED_HOSTS = env.hosts("CONTEXTAPP_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.origins("CONTEXTAPP_TRUSTED_ORIGINS")
CSRF_FAILURE_VIEW = "contextapp.error_pages.csrf_failure"
BEHIND_TLS = env.flag("CONTEXTAPP_BEHIND_TLS")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "csp",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "accounts",
    "sessions",
    "replay",
    "contextapp",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "sessions.api.metrics.RequestMetrics",
    "contextapp.middleware.PoolCheck",
    "contextapp.middleware.PageMiddleware",
]
PAGE_MIDDLEWARE = [
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "accounts.middleware.LoginRequired",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "contextapp.error_pages.FormUrlPages",
]

ROOT_URLCONF = "contextapp.urls"
WSGI_APPLICATION = "contextapp.wsgi.application"

# All templates have the tags and filters of these modules, so none needs `{% load %}`.
tags = [f"sessions.pages.tags.{file.stem}" for file in (BASE_DIR / "sessions/pages/tags").glob("[!_]*.py")]
loaders = ["contextapp.template_files.Unindented", "django.template.loaders.app_directories.Loader"]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": [("django.template.loaders.cached.Loader", loaders)],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["django.templatetags.static", "replay.templatetags.replay", *tags],
        },
    },
]

# -- Data ---------------------------------------------------------------------------------------

DATABASES = {
    "default": dj_database_url.parse(
        env.url(
            "DATABASE_URL",
            database_url(HOME),
            schemes=("postgres", "postgresql"),
            example="postgresql://user:password@host/name",
        ),
        conn_max_age=0,  # required by Django's connection pool
        disable_server_side_cursors=True,  # PgBouncer may use another connection for the next statement
    )
}
options = DATABASES["default"].setdefault("OPTIONS", {})
options["prepare_threshold"] = 5  # only the hottest queries are prepared (see `sessions/store/postgres.py`)
if pool_size := env.pool_size():
    # By default, the pause between two attempts to reconnect grows to two minutes.
    options["pool"] = {"min_size": 1, "max_size": pool_size, "timeout": 10, "reconnect_timeout": 5}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CELERY_BROKER_URL = env.broker_url("CELERY_BROKER_URL") or broker_url(HOME)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = queues.TRANSPORT_OPTIONS
CELERY_TASK_QUEUES = queues.QUEUES
CELERY_TASK_DEFAULT_QUEUE = queues.DEFAULT
CELERY_TASK_ROUTES = queues.ROUTES
CELERY_TASK_IGNORE_RESULT = True  # tasks store their results in the database
# Redeliver running tasks after the connection to the broker was lost. Celery's default from 6.0.
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False  # use LOGGING below in the worker as well
# Deliver a task to another worker if its worker dies. All tasks are idempotent.
CELERY_TASK_ACKS_LATE = CELERY_TASK_REJECT_ON_WORKER_LOST = True
WORKER_STOP_SECONDS = 12  # seconds until a worker that stops leaves its tasks to others
CELERY_WORKER_MAX_MEMORY_PER_CHILD = 320 * 1024  # kB; replace a process that a large import has grown
CELERY_WORKER_PROC_ALIVE_TIMEOUT = 60.0  # seconds; with the default of 4, overload kills each new process
# A summary takes seconds: a worker must not reserve tasks that an idle worker could run.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1

# -- Limits and budgets -------------------------------------------------------------------------

#: Limits of one request: bytes of its body, messages per push, bytes per message, files per upload.
CONTEXTAPP_MAX_BODY_BYTES = env.integer("CONTEXTAPP_MAX_BODY_BYTES", 16 * 1024 * 1024, minimum=1)
CONTEXTAPP_MAX_MESSAGES = env.integer("CONTEXTAPP_MAX_MESSAGES", 1000, minimum=1)
CONTEXTAPP_MAX_MESSAGE_BYTES = env.integer("CONTEXTAPP_MAX_MESSAGE_BYTES", 8 * 1024 * 1024, minimum=1)
DATA_UPLOAD_MAX_NUMBER_FILES = 1000
DATA_UPLOAD_MAX_MEMORY_SIZE = CONTEXTAPP_MAX_BODY_BYTES
#: Bytes of a log imported over the API. The command line has no limit.
CONTEXTAPP_MAX_IMPORT_BYTES = env.integer("CONTEXTAPP_MAX_IMPORT_BYTES", 64 * 1024 * 1024, minimum=1)
#: Requests per minute and API key; 0 for no limit. A key can have its own limit.
CONTEXTAPP_RATE_LIMIT = env.integer("CONTEXTAPP_RATE_LIMIT", 0)
#: The budget, in input tokens, of a session without a budget and without a known context window.
CONTEXTAPP_DEFAULT_BUDGET = env.integer("CONTEXTAPP_DEFAULT_BUDGET", 100_000, minimum=1)
#: Tokens of the context window that are reserved for the model's output.
CONTEXTAPP_MAX_OUTPUT = env.integer("CONTEXTAPP_MAX_OUTPUT", 16_000)

#: The URL of the dashboard, for links in messages and emails, which are otherwise left out.
CONTEXTAPP_PUBLIC_URL = env.web_url("CONTEXTAPP_PUBLIC_URL")
#: The URL of the dashboard on this machine.
CONTEXTAPP_LOCAL_URL = f"http://127.0.0.1:{env.port()}"

# -- Gateway ------------------------------------------------------------------------------------

#: The providers' URLs. Projects can override them.
CONTEXTAPP_GATEWAY_UPSTREAMS = {
    "anthropic": env.web_url("CONTEXTAPP_GATEWAY_ANTHROPIC_URL", "https://api.anthropic.com"),
    "openai": env.web_url("CONTEXTAPP_GATEWAY_OPENAI_URL", "https://api.openai.com"),
    "gemini": env.web_url("CONTEXTAPP_GATEWAY_GEMINI_URL", "https://generativelanguage.googleapis.com"),
}
#: Projects may set http and private addresses as providers: only if every project is trusted.
CONTEXTAPP_GATEWAY_ALLOW_PRIVATE = env.flag("CONTEXTAPP_GATEWAY_ALLOW_PRIVATE")
#: The URL at which agents reach the gateway, shown on the page Connect. Defaults to a URL with the port.
CONTEXTAPP_GATEWAY_PUBLIC_URL = env.web_url("CONTEXTAPP_GATEWAY_PUBLIC_URL")
CONTEXTAPP_GATEWAY_PORT = env.gateway_port()
#: Maximum size of a request in bytes. Anthropic's limit is 32 MB.
CONTEXTAPP_GATEWAY_MAX_BODY_BYTES = env.integer("CONTEXTAPP_GATEWAY_MAX_BODY_BYTES", 64 * 1024 * 1024)
#: Calls wait in this folder while the database is unavailable.
CONTEXTAPP_GATEWAY_SPOOL = Path(env.text("CONTEXTAPP_GATEWAY_SPOOL") or HOME / "gateway-spool")

# -- Background work ----------------------------------------------------------------------------

CELERY_BEAT_SCHEDULE = beat_schedule()
#: Seconds after which a pending compaction that no worker has started is queued again.
CONTEXTAPP_REDISPATCH_SECONDS = env.seconds("CONTEXTAPP_REDISPATCH_SECONDS", 20)
#: Seconds after which a worker that has not renewed its lease is considered dead.
CONTEXTAPP_LEASE_SECONDS = env.seconds("CONTEXTAPP_LEASE_SECONDS", 20)
#: Seconds without a turn after which facts are proposed and a model extracts memory from the new turns.
CONTEXTAPP_MEMORY_REST_SECONDS = env.seconds("CONTEXTAPP_MEMORY_REST_SECONDS", 300)
#: Whether webhooks may use http and private addresses. Enable only if every project is trusted.
CONTEXTAPP_WEBHOOK_ALLOW_PRIVATE = env.flag("CONTEXTAPP_WEBHOOK_ALLOW_PRIVATE")

# -- Summaries by a model -----------------------------------------------------------------------

CONTEXTAPP_ANTHROPIC_API_KEY = env.text("CONTEXTAPP_ANTHROPIC_API_KEY") or env.text("ANTHROPIC_API_KEY")
CONTEXTAPP_ANTHROPIC_BASE_URL = env.web_url("ANTHROPIC_BASE_URL") or None
#: The summarizer model of projects that set none: "" for an inexpensive model, "off" for none.
CONTEXTAPP_SUMMARIZER_MODEL = env.text("CONTEXTAPP_SUMMARIZER_MODEL")
#: Seconds for one request, for all requests of a summary, and before the first retry.
CONTEXTAPP_SUMMARIZER_TIMEOUT = env.seconds("CONTEXTAPP_SUMMARIZER_TIMEOUT", 60)
CONTEXTAPP_SUMMARIZER_TOTAL_TIMEOUT = env.seconds("CONTEXTAPP_SUMMARIZER_TOTAL_TIMEOUT", 180)
CONTEXTAPP_SUMMARIZER_BACKOFF = env.seconds("CONTEXTAPP_SUMMARIZER_BACKOFF", 1)
#: Cool-down of a session's background compactions after `max_failures` consecutive failures, in seconds.
CONTEXTAPP_COOLDOWN_SECONDS = env.seconds("CONTEXTAPP_COOLDOWN_SECONDS", 600)
#: Seconds without a turn after which the provider's cache has expired, so that a new recap has no extra cost.
CONTEXTAPP_UPGRADE_IDLE_SECONDS = env.seconds("CONTEXTAPP_UPGRADE_IDLE_SECONDS", 300)

# -- Email --------------------------------------------------------------------------------------

#: The SMTP server for budget alerts. Without one, no emails are sent.
EMAIL_HOST = env.text("CONTEXTAPP_SMTP_HOST")
EMAIL_PORT = env.integer("CONTEXTAPP_SMTP_PORT", 587, minimum=1, maximum=65535)
EMAIL_HOST_USER = env.text("CONTEXTAPP_SMTP_USER")
EMAIL_HOST_PASSWORD = env.text("CONTEXTAPP_SMTP_PASSWORD")
EMAIL_USE_TLS = env.flag("CONTEXTAPP_SMTP_TLS", default=True)
EMAIL_TIMEOUT = 10  # seconds
DEFAULT_FROM_EMAIL = env.text("CONTEXTAPP_MAIL_FROM", "contextapp@localhost")

# -- Users --------------------------------------------------------------------------------------

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BEHIND_TLS
if BEHIND_TLS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 31_536_000
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}

# -- Pages --------------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False

STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static", ("docs", BASE_DIR / "docs" / "images")]
# A checkout serves the files of STATICFILES_DIRS, which `git pull` replaces while the server runs. The Docker
# image collects, compresses and hashes them.
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = not STATIC_ROOT.is_dir()
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "contextapp.static_files.HashedFiles"
        if STATIC_ROOT.is_dir()
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
STORAGES |= blob_storage()

# -- API ----------------------------------------------------------------------------------------

#: The server that counts requests for rate limits: the broker, if it is Valkey or Redis.
CONTEXTAPP_VALKEY_URL = CELERY_BROKER_URL if CELERY_BROKER_URL.startswith(("redis", "unix")) else ""

REST_FRAMEWORK: dict[str, Any] = {
    "URL_FORMAT_OVERRIDE": None,  # the query parameter `format` is the dialect of a session
    "DEFAULT_SCHEMA_CLASS": "sessions.api.schema.CallSchema",
    "DEFAULT_AUTHENTICATION_CLASSES": [],  # `sessions.api.endpoint` checks the API key
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = openapi_settings(VERSION)

# -- Metrics ------------------------------------------------------------------------------------

#: The Prometheus client reads this variable when it is imported.
CONTEXTAPP_METRICS_FOLDER = os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", str(HOME / "metrics"))
#: The bearer token for /metrics. Without one, only requests from this machine are allowed.
CONTEXTAPP_METRICS_TOKEN = env.text("CONTEXTAPP_METRICS_TOKEN")

# -- Logs ---------------------------------------------------------------------------------------

LOG_LEVEL = env.choice("CONTEXTAPP_LOG_LEVEL", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"), "WARNING")
LOGGING = logging_settings(LOG_LEVEL)
