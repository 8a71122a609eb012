from django.apps import AppConfig
from psycopg.types.json import set_json_loads


class SessionsConfig(AppConfig):
    """The label differs from the package's name: `sessions` is taken by `django.contrib.sessions`."""

    name = "sessions"
    label = "agent_sessions"
    verbose_name = "Agent sessions"

    def ready(self) -> None:
        # psycopg decodes the JSON columns of statements that do not use models.
        from sessions.models.fields import json_decode

        set_json_loads(json_decode)
