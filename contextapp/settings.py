"""Django settings, all from the environment. `docs/configuration.md` lists the variables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dj_database_url
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from contextapp.embedded.home import broker_url, database_url
from contextapp.options import *  # noqa: F403  # a setting each
from contextapp.options import (
    CONTEXTAPP_IDLE_CHECK_SECONDS,
    CONTEXTAPP_MAX_BODY_BYTES,
    CONTEXTAPP_PROFILE_SECONDS,
    CONTEXTAPP_REFERENCE_SECONDS,
    CONTEXTAPP_ROLLUP_SECONDS,
    CONTEXTAPP_SWEEP_SECONDS,
    env_flag,
    env_list,
)

BASE_DIR = Path(__file__).resolve().parent.parent


HOME = Path(os.environ.get("CONTEXTAPP_HOME") or BASE_DIR / ".contextapp").absolute()
DEBUG = env_flag("CONTEXTAPP_DEBUG")
VERSION = "0.1.0"


def secret_key() -> str:
    """The key of cookies and signatures: from the environment, else from the data folder.

    Only a process that serves needs a lasting one; a management command such as `makemigrations`
    runs without, on a key that nothing signed with it outlives.
    """
    if key := os.environ.get("CONTEXTAPP_SECRET_KEY"):
        return key
    if (file := HOME / "secret-key").is_file():
        return file.read_text().strip()
    if env_flag("CONTEXTAPP_REQUIRE_SECRET_KEY"):
        raise ImproperlyConfigured("CONTEXTAPP_SECRET_KEY is not set")
    return os.urandom(32).hex()


SECRET_KEY = secret_key()
ALLOWED_HOSTS = env_list("CONTEXTAPP_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env_list("CONTEXTAPP_TRUSTED_ORIGINS", "")
BEHIND_TLS = env_flag("CONTEXTAPP_BEHIND_TLS")

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
    "contextapp.middleware.ForPages",
]
PAGE_MIDDLEWARE = [
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "contextapp.urls"
WSGI_APPLICATION = "contextapp.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "libraries": {
                name: f"sessions.pages.tags.{name}"
                for name in ("figures", "memory", "navigation", "terms", "texts", "trends")
            },
        },
    },
]

# -- Data ---------------------------------------------------------------------------------------

DATABASES = {
    "default": dj_database_url.parse(
        os.environ.get("DATABASE_URL") or database_url(HOME),
        # Django's own pool keeps the connections; it asks for CONN_MAX_AGE = 0.
        conn_max_age=0,
    )
}
if pool_size := int(os.environ.get("CONTEXTAPP_DB_POOL", "8")):
    DATABASES["default"].setdefault("OPTIONS", {})["pool"] = {
        "min_size": 1,
        "max_size": pool_size,
        "timeout": 10,
    }
# The hot calls prepare their statements (see `sessions/store/postgres.py`); Django sends the rest as text.
DATABASES["default"].setdefault("OPTIONS", {})["prepare_threshold"] = 5
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CELERY_BROKER_URL = os.environ.get("CELERY_BROKER_URL") or broker_url(HOME)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True  # what a task did stands in the database
# What was running when the broker went away is delivered again; Celery's default from 6.0 on.
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False  # LOGGING below holds for the worker too
# A task that its worker did not finish goes to another one; all of them are idempotent.
CELERY_TASK_ACKS_LATE = CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1  # a summary takes seconds: none waits behind one while a worker is free
_PERIODIC = {
    "budgets": ("sessions.tasks.budgets_watch", CONTEXTAPP_ROLLUP_SECONDS),
    "retention": ("sessions.tasks.retention_run", 3_600.0),
    "rollups": ("sessions.tasks.rollups_fill", CONTEXTAPP_ROLLUP_SECONDS),
    "derive": ("sessions.tasks.derive_everywhere", 300.0),
    "sweep": ("sessions.tasks.compactions_sweep", CONTEXTAPP_SWEEP_SECONDS),
    "webhooks": ("sessions.tasks.webhooks_sweep", CONTEXTAPP_SWEEP_SECONDS),
    "idle": ("sessions.tasks.compactions_idle", CONTEXTAPP_IDLE_CHECK_SECONDS),
    "upgrade": ("sessions.tasks.compactions_upgrade", CONTEXTAPP_IDLE_CHECK_SECONDS),
    "references": ("sessions.tasks.references_check", CONTEXTAPP_REFERENCE_SECONDS),
    "replays": ("replay.tasks.replays_sweep", CONTEXTAPP_SWEEP_SECONDS),
    "profiles": ("sessions.tasks.profiles_refresh", CONTEXTAPP_PROFILE_SECONDS),
    "memory": ("sessions.tasks.memory_sweep", CONTEXTAPP_SWEEP_SECONDS),
    "proposals": ("sessions.tasks.memory_propose", CONTEXTAPP_IDLE_CHECK_SECONDS),
}
# What no worker has taken within a minute is not worth taking: the next one is on its way.
CELERY_BEAT_SCHEDULE = {
    name: {"task": task, "schedule": seconds, "options": {"expires": 60}}
    for name, (task, seconds) in _PERIODIC.items()
}

# -- E-mail -------------------------------------------------------------------------------------

#: The mail server that alerts go out by; "" for none.
EMAIL_HOST = os.environ.get("CONTEXTAPP_SMTP_HOST", "")
EMAIL_PORT = int(os.environ.get("CONTEXTAPP_SMTP_PORT", "587"))
EMAIL_HOST_USER = os.environ.get("CONTEXTAPP_SMTP_USER", "")
EMAIL_HOST_PASSWORD = os.environ.get("CONTEXTAPP_SMTP_PASSWORD", "")
EMAIL_USE_TLS = env_flag("CONTEXTAPP_SMTP_TLS", default=True)
EMAIL_TIMEOUT = 10  # seconds
DEFAULT_FROM_EMAIL = os.environ.get("CONTEXTAPP_MAIL_FROM", "contextapp@localhost")

# -- People -------------------------------------------------------------------------------------

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
USE_TZ = True
USE_THOUSAND_SEPARATOR = True

STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Files are served from where they lie, so that a checkout needs no collecting step; an image collects
# them once and serves the compressed, hashed ones.
WHITENOISE_USE_FINDERS = not STATIC_ROOT.is_dir()
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "contextapp.static_files.HashedFiles"
        if STATIC_ROOT.is_dir()
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}


def blob_storage(kind: str) -> dict[str, Any]:
    """The store of large contents beside Postgres, if any. Credentials come by the usual AWS_* variables."""
    if kind == "":
        return {}
    if kind == "file":
        folder = os.environ.get("CONTEXTAPP_BLOB_FOLDER") or HOME / "blobs"
        options: dict[str, Any] = {"location": folder, "allow_overwrite": True}
        return {"blobs": {"BACKEND": "sessions.store.blobs.BlobFolder", "OPTIONS": options}}
    if kind == "s3":
        options = {
            "bucket_name": os.environ.get("CONTEXTAPP_BLOB_BUCKET"),
            "endpoint_url": os.environ.get("CONTEXTAPP_BLOB_ENDPOINT") or None,
            "file_overwrite": True,
            "querystring_auth": False,
        }
        if not options["bucket_name"]:
            raise ImproperlyConfigured("CONTEXTAPP_BLOB_BUCKET is not set")
        return {"blobs": {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}}
    raise ImproperlyConfigured(f'CONTEXTAPP_BLOB_STORAGE is "", "file" or "s3", not {kind!r}')


CONTEXTAPP_BLOB_STORAGE = os.environ.get("CONTEXTAPP_BLOB_STORAGE", "")
STORAGES |= blob_storage(CONTEXTAPP_BLOB_STORAGE)

# -- API ----------------------------------------------------------------------------------------

#: Where rates are counted: the broker, if it is a Valkey or Redis.
CONTEXTAPP_VALKEY_URL = CELERY_BROKER_URL if CELERY_BROKER_URL.startswith(("redis", "unix")) else ""
DATA_UPLOAD_MAX_MEMORY_SIZE = CONTEXTAPP_MAX_BODY_BYTES

REST_FRAMEWORK: dict[str, Any] = {
    "URL_FORMAT_OVERRIDE": None,  # `format` is the provider's format here
    "DEFAULT_SCHEMA_CLASS": "sessions.api.schema.CallSchema",
    "DEFAULT_AUTHENTICATION_CLASSES": [],  # `sessions.api.endpoint` knows the keys
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "contextapp",
    "DESCRIPTION": "Session store and context compactor for LLM agents. Agents push each turn and fetch "
    "back a prompt that fits the budget and is valid for the provider.",
    "VERSION": VERSION,
    "SERVERS": [{"url": "/", "description": "this server"}],
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "APPEND_COMPONENTS": {
        "securitySchemes": {
            "apiKey": {"type": "http", "scheme": "bearer", "description": "an API key: `ctx_…`"}
        }
    },
    "ENUM_NAME_OVERRIDES": {
        "WebhookEventEnum": "sessions.models.WebhookEvent",
        "SharedFactStateEnum": "sessions.models.SharedFact.State",
        "ReplayStateEnum": "replay.models.ReplayRun.State",
        "ReplayWantedEnum": "replay.services.runs.WANTED",
    },
    # In the order in which an agent's author needs them.
    "TAGS": [
        {"name": "Sessions"},
        {"name": "Turns and prompts"},
        {"name": "Compactions"},
        {"name": "What the prompt no longer shows"},
        {"name": "The agent's tools"},
        {"name": "Working memory"},
        {"name": "Usage"},
        {"name": "Imports"},
        {"name": "Replays"},
        {"name": "Webhooks"},
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"persistAuthorization": False, "docExpansion": "list", "validatorUrl": None},
}

# -- Metrics ------------------------------------------------------------------------------------

#: Where the processes count; the Prometheus client reads the variable when it is imported.
CONTEXTAPP_METRICS_FOLDER = os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", str(HOME / "metrics"))
#: Who asks for /metrics with this bearer token is answered. Without a token: only this machine.
CONTEXTAPP_METRICS_TOKEN = os.environ.get("CONTEXTAPP_METRICS_TOKEN", "")

# -- Logs ---------------------------------------------------------------------------------------

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("CONTEXTAPP_LOG_LEVEL", "WARNING")},
    # A 404 is the caller's news and not the server's.
    "loggers": {"django.request": {"level": "ERROR"}},
}
