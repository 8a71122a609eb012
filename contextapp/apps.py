from django.apps import AppConfig


class ContextappConfig(AppConfig):
    name = "contextapp"

    def ready(self) -> None:
        """Make our Celery application the current one, so that every process sends its tasks there."""
        from contextapp import celery  # noqa: F401
