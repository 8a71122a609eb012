import msgspec
from django.apps import AppConfig
from psycopg.types.json import set_json_loads


class SessionsConfig(AppConfig):
    """The label differs from the package's name: `sessions` is taken by `django.contrib.sessions`."""

    name = "sessions"
    label = "agent_sessions"
    verbose_name = "Agent sessions"

    def ready(self) -> None:
        # Of JSON columns, psycopg would read each value with the standard library, in seven times the time.
        set_json_loads(msgspec.json.decode)
