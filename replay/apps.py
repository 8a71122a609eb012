from typing import Any

from django.apps import AppConfig


class ReplayConfig(AppConfig):
    name = "replay"

    def ready(self) -> None:
        from sessions.services.samples.signals import sample_loaded, sample_removing

        sample_loaded.connect(_sample_replay, dispatch_uid="replay")
        sample_removing.connect(_sample_replays_delete, dispatch_uid="replay")


# Imported when they are called: most processes never are, and the import takes a fifth of Django's start.
def _sample_replay(**fields: Any) -> None:
    from replay.services.sample import sample_replay

    sample_replay(**fields)


def _sample_replays_delete(**fields: Any) -> None:
    from replay.services.sample import sample_replays_delete

    sample_replays_delete(**fields)
