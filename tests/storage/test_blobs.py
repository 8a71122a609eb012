"""Large contents in object storage: write, read, share and remove."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import pytest
from django.core.files.storage import storages
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from storages.backends.s3 import S3Storage

from accounts.models import Project
from accounts.services.api_keys import api_key_create
from contextapp.blob_storage import blob_storage
from contextapp.env import InvalidVariable
from importers.base import ImportedMessage, ImportedSession, ImportedTurn
from sessions.models import AgentSession, Blob
from sessions.selectors.convert import message_body
from sessions.selectors.transcripts.pages import message_get
from sessions.services.blobs import contents_put, contents_remove
from sessions.services.imports.store import session_import
from sessions.store import blobs, bodies
from tests.api.client import Api
from tests.api.talk import call, output, prompt, push, request, result

GIANT = output(0, 900)


@pytest.fixture
def folder(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store large contents in this folder."""
    monkeypatch.setenv("CONTEXTAPP_BLOB_STORAGE", "file")
    monkeypatch.setenv("CONTEXTAPP_BLOB_FOLDER", str(tmp_path))
    settings.STORAGES = settings.STORAGES | blob_storage()
    return tmp_path


@pytest.fixture
def api(transactional_db: None, project: Project) -> Api:
    """Return a client with real transactions, because deletions remove contents after the commit."""
    return Api(api_key_create(project=project, name="admin", scopes=["admin", "push", "read"])[1])


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def session_of(api: Api, name: str, *messages: dict[str, Any], **fields: Any) -> None:
    assert api.post("sessions/", {"id": name, **fields}).status_code == 201
    push(api, list(messages), session=name)


def removed_elsewhere(project_id: UUID, sha256: bytes) -> None:
    """Remove a content on a separate connection, for a thread."""
    try:
        contents_remove(project_id, [sha256])
    finally:
        connection.close()


class TestAPush:
    def test_a_push_writes_large_content_to_object_storage_only(self, api: Api, folder: Path) -> None:
        assert len(GIANT) > 40_000
        session_of(api, "s1", request(GIANT))
        [row], [file] = Blob.objects.all(), files(folder)
        assert row.data is None
        assert file == folder / str(row.project_id) / bytes(row.sha256).hex()
        stored = bodies.unpack(file.read_bytes())
        assert stored == bodies.json_bytes(request(GIANT))
        assert row.size == len(stored)

    def test_a_retried_push_is_stored_once(self, api: Api, folder: Path) -> None:
        api.post("sessions/", {"id": "s1"})
        answers = [
            api.post("sessions/s1/turns/", {"messages": [request(GIANT)]}, idempotency_key="k").json()
            for _ in range(2)
        ]
        assert answers[0] == answers[1]
        assert len(files(folder)) == Blob.objects.count() == 1

    def test_a_push_of_small_messages_writes_no_objects(self, api: Api, folder: Path) -> None:
        session_of(api, "s1", request())
        assert files(folder) == []

    def test_while_object_storage_is_unavailable_the_client_can_retry(
        self, api: Api, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        api.post("sessions/", {"id": "s1"})
        body = {"messages": [request(GIANT)]}
        with monkeypatch.context() as patch:
            patch.setattr(storages["blobs"], "save", Mock(side_effect=OSError("no space")))
            response = api.post("sessions/s1/turns/", body, idempotency_key="k")
        assert (response.status_code, response["Retry-After"]) == (503, "2")
        assert "object storage is unavailable" in response.json()["error"]["message"]
        assert api.post("sessions/s1/turns/", body, idempotency_key="k").status_code == 201
        with monkeypatch.context() as patch:
            patch.setattr(storages["blobs"], "open", Mock(side_effect=OSError("no response")))
            assert api.get("sessions/s1/turns/").status_code == 503
        assert prompt(api)["messages"] == [request(GIANT)]

    def test_without_object_storage_a_push_writes_to_postgres(self, api: Api, tmp_path: Path) -> None:
        session_of(api, "s1", request(GIANT))
        assert Blob.objects.get().data is not None
        assert files(tmp_path) == []


class TestReading:
    def test_prompt_turns_and_search_return_the_original_content(self, api: Api, folder: Path) -> None:
        session_of(api, "s1", request(GIANT), budget={"input_tokens": 100_000})
        assert prompt(api)["messages"] == [request(GIANT)]
        assert prompt(api, "?at_turn=0")["messages"] == [request(GIANT)]
        [turn] = api.get("sessions/s1/turns/").json()["data"]
        assert turn["messages"] == [request(GIANT)]
        [hit] = api.get("sessions/s1/search/?q=handler_0_899").json()["data"]
        assert hit["position"] == 0

    @pytest.mark.slow
    def test_a_cleared_output_is_retrieved_by_its_handle(self, api: Api, folder: Path) -> None:
        session_of(api, "s1", request(), budget={"input_tokens": 25_000}, policy="masking")
        for number in range(4):
            push(api, [call(f"toolu_{number}"), result(f"toolu_{number}", output(number, 900))])
        edits = api.get("sessions/s1/compactions/1/").json()["edits"]
        handle = next(edit["handle"] for edit in edits if edit["handle"])
        text = api.get(f"sessions/s1/blobs/{handle}/?limit=2000").json()["text"]
        assert text == output(0, 900)

    def test_contents_in_postgres_remain_readable_with_object_storage(
        self, api: Api, tmp_path: Path, request: pytest.FixtureRequest
    ) -> None:
        before, after = {"role": "user", "content": GIANT}, {"role": "user", "content": output(1, 900)}
        session_of(api, "s1", before)
        request.getfixturevalue("folder")
        push(api, [after])
        assert prompt(api)["messages"] == [before, after]
        assert sorted(row.data is None for row in Blob.objects.all()) == [False, True]


def test_an_import_writes_large_content_to_object_storage(project: Project, folder: Path) -> None:
    log = ImportedSession(
        external_id="log",
        format="anthropic",
        agent="tests",
        turns=[ImportedTurn(messages=[ImportedMessage(body=request(GIANT), source_id="1")])],
    )
    session_import(project=project, imported=log)
    assert Blob.objects.get().data is None
    assert len(files(folder)) == 1
    row = message_get(session=AgentSession.objects.get(), position=0)
    assert row is not None
    assert message_body(row) == request(GIANT)


@pytest.mark.parametrize("external", [False, True])
def test_an_import_removes_large_content_that_it_replaces(
    project: Project, transactional_db: None, external: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if external:
        request.getfixturevalue("folder")

    def read(*texts: str) -> None:
        messages = [
            ImportedMessage(body={"role": "user", "content": text}, source_id=str(number))
            for number, text in enumerate(texts)
        ]
        turns = [ImportedTurn(messages=[message]) for message in messages]
        log = ImportedSession(external_id="log", format="anthropic", agent="tests", turns=turns)
        session_import(project=project, imported=log)

    read("Read it.", GIANT)
    read("Read it.", GIANT + "the end")
    assert Blob.objects.count() == 1
    assert len(files(tmp_path)) == external


class TestADeletion:
    @pytest.mark.slow
    def test_a_deletion_removes_content_with_its_last_use(self, api: Api, folder: Path) -> None:
        session_of(api, "s1", request(GIANT))
        session_of(api, "s2", request(GIANT))
        assert len(files(folder)) == Blob.objects.count() == 1
        api.delete("sessions/s1/")
        assert prompt(api, session="s2")["messages"] == [request(GIANT)]
        api.delete("sessions/s2/")
        assert files(folder) == []
        assert not Blob.objects.exists()

    def test_a_deletion_keeps_content_that_was_pushed_again(
        self, api: Api, project: Project, folder: Path
    ) -> None:
        session_of(api, "s1", request(GIANT))
        contents_remove(project.pk, [bytes(Blob.objects.get().sha256)])
        assert prompt(api)["messages"] == [request(GIANT)]

    def test_a_deletion_waits_for_an_uncommitted_push(
        self, transactional_db: None, project: Project, folder: Path
    ) -> None:
        sha256 = hashlib.sha256(GIANT.encode()).digest()
        with ThreadPoolExecutor(1) as pool:
            with transaction.atomic():
                contents_put(project.pk, {sha256: GIANT.encode()})
                removal = pool.submit(removed_elsewhere, project.pk, sha256)
                with pytest.raises(TimeoutError):
                    removal.result(timeout=0.5)
                Blob.objects.create(project=project, sha256=sha256, size=len(GIANT))
            removal.result(timeout=60)
        assert len(files(folder)) == 1

    def test_a_deletion_succeeds_without_object_storage(
        self, api: Api, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        session_of(api, "s1", request(GIANT))
        monkeypatch.setattr(storages["blobs"], "delete", Mock(side_effect=OSError("no response")))
        assert api.delete("sessions/s1/").status_code == 204
        assert len(files(folder)) == 1

    def test_deleting_a_missing_file_is_not_an_error(self, api: Api, folder: Path) -> None:
        session_of(api, "s1", request(GIANT))
        files(folder)[0].unlink()
        assert api.delete("sessions/s1/").status_code == 204

    def test_of_a_project_leaves_no_files(self, api: Api, project: Project, folder: Path) -> None:
        session_of(api, "s1", request(GIANT))
        with transaction.atomic():
            contents_put(project.pk, {hashlib.sha256(b"{}").digest(): b"{}"})
            transaction.set_rollback(True)
        assert len(files(folder)) == 2
        call_command("delete_project", project.slug, "--yes", stdout=StringIO())
        assert list(folder.iterdir()) == []

    def test_of_a_project_is_repeated_until_no_files_remain(
        self, api: Api, project: Project, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        session_of(api, "s1", request(GIANT))
        with monkeypatch.context() as patched:
            patched.setattr(storages["blobs"], "delete", Mock(side_effect=OSError("no response")))
            with pytest.raises(CommandError, match="no response"):
                call_command("delete_project", project.slug, "--yes", stdout=StringIO())
        assert len(files(folder)) == 1
        call_command("delete_project", project.slug, "--yes", stdout=StringIO())
        assert list(folder.iterdir()) == []
        assert not Project.objects.filter(pk=project.pk).exists()


def test_a_rolled_back_push_leaves_a_file_for_the_retry(project: Project, folder: Path) -> None:
    large = {hashlib.sha256(GIANT.encode()).digest(): GIANT.encode()}
    with transaction.atomic():
        contents_put(project.pk, large)
        transaction.set_rollback(True)
    assert len(files(folder)) == 1
    contents_remove(project.pk, large)
    assert files(folder) == []


class TestTheSettings:
    def test_the_settings_configure_an_s3_storage(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CONTEXTAPP_BLOB_STORAGE", "s3")
        monkeypatch.setenv("CONTEXTAPP_BLOB_BUCKET", "contents")
        monkeypatch.setenv("CONTEXTAPP_BLOB_ENDPOINT", "http://objects.invalid:9000")
        settings.STORAGES = settings.STORAGES | blob_storage()
        store = storages["blobs"]
        assert isinstance(store, S3Storage)
        assert (store.bucket_name, store.endpoint_url) == ("contents", "http://objects.invalid:9000")
        assert (store.file_overwrite, store.querystring_auth) == (True, False)
        assert blobs.is_external()

    def test_contents_are_in_postgres_by_default(self) -> None:
        assert blob_storage() == {}
        assert not blobs.is_external()

    @pytest.mark.parametrize("kind", ["s3", "ftp"])
    def test_invalid_storage_settings_are_rejected(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("CONTEXTAPP_BLOB_BUCKET", raising=False)
        monkeypatch.setenv("CONTEXTAPP_BLOB_STORAGE", kind)
        with pytest.raises(InvalidVariable):
            blob_storage()


def test_a_file_is_complete_while_it_is_rewritten(folder: Path) -> None:
    project, data = UUID(int=1), b"x" * 100_000
    sha256 = hashlib.sha256(data).digest()
    blobs.blob_put(project, sha256, data)
    with (folder / blobs.blob_name(project, sha256)).open("rb") as reader:
        blobs.blob_put(project, sha256, data)
        assert len(reader.read()) == 100_000
    assert blobs.blob_get(project, sha256) == data
    assert len(files(folder)) == 1
