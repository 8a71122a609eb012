"""The clock of the periodic tasks: `celery -A contextapp.clock beat`.

A Celery application that knows when to call what by name, and loads neither Django nor the tasks: it takes
half the memory of one that does.
"""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextapp.settings")

app = Celery("contextapp", fixups=[])
app.config_from_object(os.environ["DJANGO_SETTINGS_MODULE"], namespace="CELERY")
