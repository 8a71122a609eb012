"""The page Import logs: upload, progress, cancellation."""

from __future__ import annotations

import gzip
from typing import Any

import orjson
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils.html import escape

from accounts.models import Project
from sessions.models import AgentSession, ImportJob
from sessions.pages.imports import views
from sessions.services.imports import execution

pytestmark = pytest.mark.django_db

PAGE = "/p/alpha/imports/"
LOG = orjson.dumps(
    {"messages": [{"role": "user", "content": "List the files."}, {"role": "assistant", "content": "None."}]}
)


def upload(client: Client, data: bytes = LOG, **fields: str) -> object:
    return client.post(PAGE, {"file": SimpleUploadedFile("run-7.json", data), **fields})


def test_an_upload_is_followed_to_its_session(member_client: Client, project: Project) -> None:
    response = upload(member_client)
    assert response.status_code == 302  # type: ignore[attr-defined]
    address = response.url  # type: ignore[attr-defined]
    text = member_client.get(address).text
    assert "waiting for a worker" in text
    assert "hx-get" in text
    job = ImportJob.objects.get()
    execution.import_step(job_id=job.pk)
    text = member_client.get(address).text
    session = AgentSession.objects.get(project=project, external_id="run-7")
    assert f"/p/alpha/sessions/{session.pk}/" in text
    assert "2 of 2 messages" in text
    assert "hx-get" not in text
    assert "run-7.json" in member_client.get(PAGE).text


def test_a_long_import_shows_its_progress(member_client: Client) -> None:
    address = upload(member_client).url  # type: ignore[attr-defined]
    ImportJob.objects.update(messages_total=12_345, messages_done=2_000)
    text = member_client.get(address).text
    assert "2,000 of 12,345 messages" in text
    assert '<progress max="12345" value="2000"' in text


@pytest.mark.slow
def test_several_logs_are_imported_at_once(member_client: Client) -> None:
    files = [SimpleUploadedFile(f"run-{number}.json", LOG) for number in (1, 2)]
    response = member_client.post(PAGE, {"file": files})
    assert response.headers["location"] == PAGE
    assert "hx-get" in member_client.get(PAGE).text
    for job in ImportJob.objects.all():
        execution.import_step(job_id=job.pk)
    assert AgentSession.objects.count() == 2
    fragment = member_client.get(PAGE, headers={"HX-Request": "true"}).text
    assert all(f"run-{number}.json" in fragment for number in (1, 2))
    assert "hx-get" not in fragment


@pytest.mark.slow
def test_a_folder_of_logs_can_be_uploaded_at_once(member_client: Client) -> None:
    files = [SimpleUploadedFile(f"run-{number}.json", LOG) for number in range(101)]
    assert member_client.post(PAGE, {"file": files}).headers["location"] == PAGE
    assert ImportJob.objects.count() == 101


def test_too_many_files_are_explained(member_client: Client, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_NUMBER_FILES = 1
    files = [SimpleUploadedFile(f"run-{number}.json", LOG) for number in (1, 2)]
    response = member_client.post(PAGE, {"file": files})
    assert response.status_code == 413
    assert "up to 1 file at once" in response.text
    assert not ImportJob.objects.exists()


def test_imports_that_the_list_no_longer_shows_are_followed(
    member_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "_MAX_JOBS", 1)
    for _ in range(2):
        upload(member_client)
    newest = ImportJob.objects.latest("pk")
    execution.import_step(job_id=newest.pk)
    text = member_client.get(PAGE).text
    assert "1 import in progress" in text
    assert "hx-get" in text


def test_a_compressed_log_is_rejected_before_its_import(member_client: Client) -> None:
    response = upload(member_client, gzip.compress(LOG))
    assert response.status_code == 422  # type: ignore[attr-defined]
    assert "run-7.json is compressed" in response.text  # type: ignore[attr-defined]
    assert not ImportJob.objects.exists()


def test_the_list_says_why_an_import_failed(member_client: Client) -> None:
    upload(member_client, b"neither JSON nor a log")
    execution.import_step(job_id=ImportJob.objects.get().pk)
    error = ImportJob.objects.get().error
    assert error
    assert escape(error)[:100] in member_client.get(PAGE).text


@pytest.mark.slow
def test_an_import_can_be_cancelled(member_client: Client) -> None:
    address = upload(member_client).url  # type: ignore[attr-defined]
    assert member_client.post(f"{address}cancel/").status_code == 302
    text = member_client.get(address).text
    assert "cancelled" in text
    assert "Cancel import" not in text
    assert "already ended" in member_client.post(f"{address}cancel/", follow=True).text


def test_a_failed_import_shows_its_reason(member_client: Client) -> None:
    address = upload(member_client, b"{}").url  # type: ignore[attr-defined]
    execution.import_step(job_id=ImportJob.objects.get().pk)
    assert "not in a supported format" in member_client.get(address).text


def test_a_log_without_messages_is_explained(member_client: Client) -> None:
    address = upload(member_client, LOG, format="codex").url  # type: ignore[attr-defined]
    execution.import_step(job_id=ImportJob.objects.get().pk)
    text = member_client.get(address).text
    assert "The log was read as codex, but it contains no messages" in text
    assert not AgentSession.objects.exists()


def test_a_file_over_the_limit_and_a_missing_one_are_rejected(
    member_client: Client, settings: object
) -> None:
    assert member_client.post(PAGE, {}).status_code == 422
    settings.CONTEXTAPP_MAX_IMPORT_BYTES = 10  # type: ignore[attr-defined]
    assert upload(member_client).status_code == 422  # type: ignore[attr-defined]
    settings.CONTEXTAPP_MAX_IMPORT_BYTES = len(LOG) + 10  # type: ignore[attr-defined]
    files = [SimpleUploadedFile(f"run-{number}.json", LOG) for number in (1, 2)]
    assert member_client.post(PAGE, {"file": files}).status_code == 422
    assert not ImportJob.objects.exists()


def test_viewers_are_offered_no_upload(viewer_client: Client, member_client: Client) -> None:
    address = upload(member_client).url  # type: ignore[attr-defined]
    assert "Cancel import" not in viewer_client.get(address).text
    assert 'type="file"' not in viewer_client.get(PAGE).text
