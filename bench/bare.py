"""The baseline of `bench/api.py`: a DRF view without authentication that only inserts the received messages.

At `/counted/…` it also counts the tokens, as any prompt store must. Runs under granian like contextapp
(`bench.bare:application`), on the same Postgres with a separate table.
"""

from __future__ import annotations

import os
import zlib

import django
from django.conf import settings

if not settings.configured:
    import dj_database_url

    database = dj_database_url.parse(os.environ["DATABASE_URL"], conn_max_age=0)
    database.setdefault("OPTIONS", {})["pool"] = {"min_size": 1, "max_size": 8}
    settings.configure(
        SECRET_KEY="bench",
        ALLOWED_HOSTS=["*"],
        DATABASES={"default": database},
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "rest_framework"],
        ROOT_URLCONF="bench.bare",
        MIDDLEWARE=["django.middleware.common.CommonMiddleware"],  # adds Content-Length
        REST_FRAMEWORK={"DEFAULT_AUTHENTICATION_CLASSES": [], "UNAUTHENTICATED_USER": None},
    )
    django.setup()

from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from compaction import dialects
from compaction.adapters.tiktoken_counter import counter


class Push(APIView):
    counts = False

    def post(self, request: Request, session: str) -> Response:
        if self.counts:
            dialects.parse(request.data["messages"], format="anthropic", counter=counter())
        rows = [
            (session, message["role"], zlib.compress(str(message).encode(), 1))
            for message in request.data["messages"]
        ]
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO bench_bare (session, role, body) VALUES (%s, %s, %s)", rows)
        return Response({"stored": len(rows)}, status=201)


urlpatterns = [
    path("<str:session>/", Push.as_view()),
    path("counted/<str:session>/", Push.as_view(counts=True)),
]
application = get_wsgi_application()
