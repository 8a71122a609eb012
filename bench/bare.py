"""The baseline of `python -m bench`: DRF views without authentication that only insert and select rows.

`/counted/…` also counts the tokens of pushed messages, as any prompt store must. Runs under granian like
contextapp (`bench.bare:application`), on the same Postgres with separate tables.
"""

from __future__ import annotations

import json
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

from bench.bare_table import row
from compaction import dialects
from compaction.adapters.tiktoken_counter import counter


class Push(APIView):
    counts = False

    def post(self, request: Request, session: str) -> Response:
        if self.counts:
            dialects.parse(request.data["messages"], format="anthropic", counter=counter())
        rows = [row(session, message) for message in request.data["messages"]]
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO bench_bare (session, role, body) VALUES (%s, %s, %s)", rows)
        return Response({"stored": len(rows)}, status=201)


class Messages(APIView):
    """A page of messages: the newest `last`, or `limit` from the position `after` on."""

    def get(self, request: Request, session: str) -> Response:
        last, after = request.query_params.get("last"), request.query_params.get("after", 0)
        with connection.cursor() as cursor:
            if last is not None:
                cursor.execute(
                    "SELECT position, role, body FROM bench_bare WHERE session = %s"
                    " ORDER BY position DESC LIMIT %s",
                    [session, int(last)],
                )
            else:
                cursor.execute(
                    "SELECT position, role, body FROM bench_bare WHERE session = %s AND position > %s"
                    " ORDER BY position LIMIT %s",
                    [session, int(after), int(request.query_params["limit"])],
                )
            rows = cursor.fetchall()
        data = [
            {"position": position, "role": role, "message": json.loads(zlib.decompress(body))}
            for position, role, body in (reversed(rows) if last is not None else rows)
        ]
        return Response({"data": data})


class Sessions(APIView):
    """The newest 50 sessions."""

    def get(self, request: Request) -> Response:
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM bench_sessions ORDER BY last_active_at DESC, id DESC LIMIT 50")
            names = [column.name for column in cursor.description]
            rows = cursor.fetchall()
        return Response({"data": [dict(zip(names, row, strict=True)) for row in rows]})


urlpatterns = [
    path("sessions/", Sessions.as_view()),
    path("messages/<str:session>/", Messages.as_view()),
    path("<str:session>/", Push.as_view()),
    path("counted/<str:session>/", Push.as_view(counts=True)),
]
application = get_wsgi_application()
