from django.apps import AppConfig


class ContextappConfig(AppConfig):
    name = "contextapp"

    def ready(self) -> None:
        """Make the Celery application the default one in every process."""
        from contextapp import celery  # noqa: F401
