"""The Celery application. Tasks live in the `tasks` module of their Django app."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextapp.settings")

app = Celery("contextapp")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
