from django.apps import AppConfig


class ReplayConfig(AppConfig):
    name = "replay"

    def ready(self) -> None:
        # Imported here because the models are not loaded yet when this module is imported.
        from replay.services.sample import sample_replay, sample_replays_delete
        from sessions.services.samples.signals import sample_loaded, sample_removing

        sample_loaded.connect(sample_replay, dispatch_uid="replay")
        sample_removing.connect(sample_replays_delete, dispatch_uid="replay")
