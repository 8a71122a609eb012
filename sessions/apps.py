from django.apps import AppConfig


class SessionsConfig(AppConfig):
    """The label differs from the package's name: `sessions` is taken by `django.contrib.sessions`."""

    name = "sessions"
    label = "agent_sessions"
    verbose_name = "Agent sessions"
