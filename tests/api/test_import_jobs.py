"""Imports that a worker continues: progress, cancellation, and resuming after a failure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from accounts.models import Project
from compaction.errors import FormatError
from importers.base import LogFile
from sessions.api.imports import views
from sessions.models import AgentSession, ImportJob, ImportPart, ImportStep, Message, Turn
from sessions.selectors.redaction import redaction_of
from sessions.services.dispatch import IMPORT_STEP
from sessions.services.imports import execution, jobs, steps, uploads
from sessions.services.imports.logs import log_import
from sessions.services.imports.reader import Reader
from sessions.services.sessions.lifecycle import session_delete
from tests.api.client import Api, code

pytestmark = pytest.mark.django_db

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def conversation(turns: int, *, name: str = "long") -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    for number in range(turns):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        messages += [
            {"role": "user", "content": f"Question {number} of {name} about file{number}.py"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"file{number}.py " * 20},
            {"role": "assistant", "content": f"Answer {number}"},
        ]
    return {"id": name, "model": "gpt-4o", "messages": messages}


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Import every log in the background, a few messages at a time and one step per slice."""
    monkeypatch.setattr(views, "SMALL_BYTES", 0)
    monkeypatch.setattr(uploads, "STEP_MESSAGES", 5)


@pytest.fixture
def upload(api_key: str) -> Callable[..., HttpResponse]:
    def send(*values: Any, name: str = "run.jsonl") -> HttpResponse:
        return Client().generic(
            "POST",
            f"/api/v1/imports/?name={name}",
            data=b"\n".join(map(orjson.dumps, values)),
            content_type="application/octet-stream",
            headers={"authorization": f"Bearer {api_key}"},
        )

    return send


def run(id: str) -> ImportJob:
    """Execute the slices of a job as a worker does."""
    for _ in range(200):
        execution.import_step(job_id=UUID(id), seconds=-1)
        job = ImportJob.objects.get(pk=id)
        if job.state not in ImportJob.OPEN:
            return job
    raise AssertionError("the import does not end")


def stored(project: Project, name: str = "long") -> dict[str, Any]:
    """Return all columns of a session, its turns and its messages, except for ids and times of storage."""
    session = AgentSession.objects.filter(project=project, external_id=name)
    [facts] = session.values()
    pk = facts["id"]
    left_out = ("id", "project_id", "created_at", "started_at", "last_active_at", "updated_at", "version")
    return {
        "session": {key: value for key, value in facts.items() if key not in left_out},
        "turns": list(Turn.objects.filter(session=pk).order_by("index").values("index", *TURN)),
        "messages": [
            {**row, "body": bytes(row["body"])}
            for row in Message.objects.filter(session=pk).order_by("position").values(*MESSAGE)
        ],
    }


TURN = ("first_position", "message_count", "prompt_estimate", "component_tokens", "cost_microusd", "billed")
MESSAGE = ("position", "turn_index", "role", "tokens", "flags", "body", "source_id")


@pytest.fixture
def other_project() -> Project:
    return Project.objects.create(name="Whole", slug="whole")


class TestJobs:
    @pytest.mark.slow
    def test_an_import_reports_its_progress_until_it_is_done(
        self, upload: Callable[..., HttpResponse], api: Api
    ) -> None:
        response = upload(conversation(9))
        assert response.status_code == 202
        job = response.json()
        assert (job["state"], job["sessions"], job["format"]) == ("pending", [], None)
        address = response["Location"]
        seen = []
        while (shown := api.get(address).json())["state"] in ("pending", "running"):
            seen.append(shown["progress"]["messages"])
            execution.import_step(job_id=UUID(job["id"]), seconds=-1)
        assert seen == sorted(seen)
        assert len(set(seen)) > 3
        assert shown["state"] == "done"
        assert shown["progress"] == {"sessions": 1, "sessions_total": 1, "messages": 37, "messages_total": 37}
        [session] = shown["sessions"]
        assert (session["state"], session["messages"]) == ("new", 37)
        assert api.get(f"sessions/{session['id']}/").json()["messages"] == 37

    @pytest.mark.slow
    def test_steps_store_the_same_as_an_import_at_once(
        self, upload: Callable[..., HttpResponse], project: Project, other_project: Project
    ) -> None:
        run(upload(conversation(9)).json()["id"])
        log = LogFile(name="run.jsonl", data=orjson.dumps(conversation(9)))
        log_import(project=other_project, log=Reader(redaction=redaction_of(other_project)).read_file(log))
        assert stored(project) == stored(other_project)

    @pytest.mark.slow
    def test_a_killed_worker_neither_loses_nor_doubles_anything(
        self,
        upload: Callable[..., HttpResponse],
        project: Project,
        other_project: Project,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        id = upload(conversation(9)).json()["id"]
        write, calls = steps.turns_write, []

        def killed(*arguments: Any) -> None:
            calls.append(1)
            write(*arguments)
            if len(calls) % 2:
                raise KeyboardInterrupt

        monkeypatch.setattr(steps, "turns_write", killed)
        for _ in range(200):
            try:
                execution.import_step(job_id=UUID(id), seconds=-1)
            except KeyboardInterrupt:
                ImportJob.objects.filter(pk=id).update(lease_until=timezone.now())  # the lease expires
            if ImportJob.objects.get(pk=id).state == ImportJob.State.DONE:
                break
        log = LogFile(name="run.jsonl", data=orjson.dumps(conversation(9)))
        log_import(project=other_project, log=Reader(redaction=redaction_of(other_project)).read_file(log))
        assert len(calls) > 4
        assert stored(project) == stored(other_project)

    @pytest.mark.slow
    def test_a_cancelled_import_stops_and_the_next_one_adds_the_rest(
        self, upload: Callable[..., HttpResponse], api: Api
    ) -> None:
        id = upload(conversation(9)).json()["id"]
        for _ in range(3):
            execution.import_step(job_id=UUID(id), seconds=-1)
        cancelled = api.patch(f"imports/{id}/", {"state": "cancelled"}).json()
        assert (cancelled["state"], cancelled["sessions"][0]["state"]) == ("cancelled", "partial")
        assert not execution.import_step(job_id=UUID(id), seconds=-1)
        assert not ImportStep.objects.exists()
        count = api.get("sessions/long/").json()["messages"]
        assert 0 < count < 37
        again = api.patch(f"imports/{id}/", {"state": "cancelled"})
        assert (again.status_code, code(again)) == (409, "import_ended")
        job = run(upload(conversation(9)).json()["id"])
        assert [row.state for row in job.sessions.all()] == ["grown"]
        assert api.get("sessions/long/").json()["messages"] == 37

    @pytest.mark.slow
    def test_many_sessions_are_listed_in_pages(self, upload: Callable[..., HttpResponse], api: Api) -> None:
        id = upload(*(conversation(1, name=f"s{number}") for number in range(7))).json()["id"]
        assert run(id).state == ImportJob.State.DONE
        first = api.get(f"imports/{id}/sessions/?limit=4").json()
        rest = api.get(f"imports/{id}/sessions/?limit=4&cursor={first['next_cursor']}").json()
        names = [row["external_id"] for row in first["data"] + rest["data"]]
        assert names == [f"s{number}" for number in range(7)]
        assert rest["next_cursor"] is None
        assert [job["id"] for job in api.get("imports/").json()["data"]] == [id]

    def test_the_upload_is_encrypted_and_deleted_with_the_end(
        self, upload: Callable[..., HttpResponse]
    ) -> None:
        spoken = {"id": "s", "messages": [{"role": "user", "content": f"Use {SECRET} for Zanzibar"}]}
        id = upload(spoken).json()["id"]
        parts = b"".join(bytes(part.data) for part in ImportPart.objects.filter(job=id))
        assert parts
        assert SECRET.encode() not in parts
        assert b"Zanzibar" not in parts
        execution.import_step(job_id=UUID(id), seconds=-1)
        assert not ImportPart.objects.exists()
        read = b"".join(bytes(step.data) for step in ImportStep.objects.filter(job=id))
        assert read
        assert b"Zanzibar" not in read
        run(id)
        assert not ImportStep.objects.exists()

    @pytest.mark.slow
    def test_secrets_in_every_step_are_counted_once(
        self, upload: Callable[..., HttpResponse], api: Api
    ) -> None:
        long = conversation(9)
        for position in (5, 21):
            long["messages"][position]["content"] += f" {SECRET}"
        id = upload(long).json()["id"]
        run(id)
        [session] = api.get(f"imports/{id}/").json()["sessions"]
        assert [found["count"] for found in session["redacted"]] == [2]


class TestFailures:
    def test_an_unknown_format(self, upload: Callable[..., HttpResponse], api: Api) -> None:
        id = upload({"a": 1}).json()["id"]
        run(id)
        shown = api.get(f"imports/{id}/").json()
        assert (shown["state"], shown["error"]["code"]) == ("failed", "unknown_format")
        assert "claude-code" in shown["error"]["message"]

    def test_a_pushed_session_is_left_unchanged(self, upload: Callable[..., HttpResponse], api: Api) -> None:
        api.post("sessions/", {"id": "long", "format": "openai"})
        id = upload(conversation(9)).json()["id"]
        run(id)
        shown = api.get(f"imports/{id}/").json()
        assert (shown["state"], shown["error"]["code"]) == ("failed", "import_conflict")
        assert shown["sessions"][0]["state"] == "conflict"

    @pytest.mark.slow
    def test_an_invalid_message_late_in_a_session_removes_what_was_imported(
        self, upload: Callable[..., HttpResponse], api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: Any, **__: Any) -> Any:
            raise FormatError("the message fits no format")

        monkeypatch.setattr(steps, "turns_prepare", refuse)  # for all steps of a session but the first
        id = upload(conversation(9), conversation(1, name="other")).json()["id"]
        assert run(id).state == ImportJob.State.DONE
        shown = api.get(f"imports/{id}/").json()
        assert [row["external_id"] for row in shown["sessions"]] == ["other"]
        assert "fits no format" in shown["damages"][0]["reason"]
        assert api.get("sessions/long/").status_code == 404

    @pytest.mark.slow
    def test_a_session_that_was_continued_meanwhile_is_not_overwritten(
        self, upload: Callable[..., HttpResponse], api: Api
    ) -> None:
        id = upload(conversation(9)).json()["id"]
        for _ in range(3):
            execution.import_step(job_id=UUID(id), seconds=-1)
        pushed = api.post("sessions/long/turns/", {"messages": [{"role": "user", "content": "mine"}]})
        assert pushed.status_code == 201
        count = api.get("sessions/long/").json()["messages"]
        assert run(id).error_code == "import_conflict"
        assert api.get("sessions/long/").json()["messages"] == count

    @pytest.mark.slow
    def test_a_session_that_was_deleted_meanwhile_is_imported_and_counted_once(
        self, upload: Callable[..., HttpResponse], api: Api
    ) -> None:
        job = upload(conversation(9)).json()
        for _ in range(3):
            execution.import_step(job_id=UUID(job["id"]), seconds=-1)
        session_delete(session=AgentSession.objects.get(external_id="long"))
        run(job["id"])
        [shown] = api.get(f"imports/{job['id']}/").json()["sessions"]
        stored = api.get("sessions/long/").json()
        assert (shown["turns"], shown["messages"]) == (stored["turns"], stored["messages"])
        assert shown["messages"] == 37

    def test_a_log_that_ends_its_workers_is_not_tried_forever(
        self, upload: Callable[..., HttpResponse], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def killed(*_: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(execution, "upload_read", killed)
        id = upload(conversation(1)).json()["id"]
        for _ in range(20):
            try:
                execution.import_step(job_id=UUID(id), seconds=-1)
            except KeyboardInterrupt:
                ImportJob.objects.filter(pk=id).update(lease_until=None)
        job = ImportJob.objects.get(pk=id)
        assert (job.state, job.error_code) == (ImportJob.State.FAILED, "import_stalled")
        assert not ImportPart.objects.exists()

    def test_a_second_worker_does_not_start_a_claimed_import(
        self, upload: Callable[..., HttpResponse]
    ) -> None:
        id = UUID(upload(conversation(1)).json()["id"])
        ImportJob.objects.filter(pk=id).update(lease_until=timezone.now() + timedelta(minutes=1))
        assert not execution.import_step(job_id=id, seconds=-1)
        assert ImportJob.objects.get(pk=id).state == ImportJob.State.PENDING

    def test_an_import_continues_after_the_clock_was_set_back(
        self, upload: Callable[..., HttpResponse], dispatched: list[tuple[str, str]]
    ) -> None:
        id = UUID(upload(conversation(1)).json()["id"])
        ImportJob.objects.filter(pk=id).update(lease_until=timezone.now() + timedelta(hours=2))
        assert jobs.import_jobs_sweep() == 1
        assert dispatched.count((IMPORT_STEP, str(id))) == 1
        execution.import_step(job_id=id)
        assert ImportJob.objects.get(pk=id).state == ImportJob.State.DONE

    def test_lost_notifications_are_repeated(
        self, upload: Callable[..., HttpResponse], dispatched: list[tuple[str, str]]
    ) -> None:
        id = upload(conversation(1)).json()["id"]
        assert jobs.import_jobs_sweep() == 1
        assert dispatched.count((IMPORT_STEP, id)) == 1

    def test_many_waiting_imports_are_not_all_notified_again_by_every_sweep(
        self, upload: Callable[..., HttpResponse], project: Project, dispatched: list[tuple[str, str]]
    ) -> None:
        oldest = upload(conversation(1)).json()["id"]
        waiting = [ImportJob(project=project, name="log.json", size=1) for _ in range(200)]
        ImportJob.objects.bulk_create(waiting)
        dispatched.clear()
        assert jobs.import_jobs_sweep() == len(dispatched) <= 50
        assert (IMPORT_STEP, oldest) in dispatched
