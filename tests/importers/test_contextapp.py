"""Sessions that contextapp exported can be imported again, in another project or instance."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User

from accounts.models import Project
from importers.base import ImportedSession, LogFile
from importers.registry import recognize
from sessions.api.imports import views
from sessions.models import AgentSession, Comment
from sessions.selectors.transcripts.export import session_jsonl
from sessions.services.imports import uploads
from sessions.services.imports.store import session_import
from sessions.services.sessions.comments import comment_create
from sessions.services.sessions.labels import session_label
from sessions.services.sessions.lifecycle import session_delete
from sessions.store.bodies import json_bytes
from tests.api.client import Api
from tests.api.talk import answer, call, push, request, result, whole_turn
from tests.api.test_redaction import everything_stored
from tests.importers.test_imported_sessions import USAGE, message, step, summary, take
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

TOOLS = [{"name": "read_file", "description": "Read a file.", "input_schema": {"type": "object"}}]

#: Fields that may change: an imported turn has another source and the whole transcript as its prompt. Each of
#: its messages has an id.
CHANGED = {"source", "source_id", "origin", "prompt_served"}


@reused
def pushed(api: Api, member: User) -> AgentSession:
    """Return a session with everything that is exported."""
    facts = {"id": "parent", "agent": "coder", "model": "claude-sonnet-4-5", "format": "anthropic"}
    api.post("sessions/", facts)
    api.post("sessions/", {**facts, "id": "s1", "parent": "parent", "metadata": {"branch": "fix"}})
    push(api, [request()], system="You are a coder.", tools=TOOLS)
    usage = {"input_tokens": 20, "cache_read_input_tokens": 900, "output_tokens": 3}
    latency = {"time_to_first_token_ms": 120, "duration_ms": 900}
    push(
        api, [call("t1", path="a.py")], usage=usage, latency=latency, request_id="req_1", response_id="msg_1"
    )
    push(api, [result("t1", "first\nsecond\u2028third \u0000 end")], system="You are an expert coder.")
    indented = json.dumps({"messages": [answer("word " * 300), request("Go on.")]}, indent=2)
    api.post("sessions/s1/turns/", indented.encode())
    push(api, [answer("Ünïcode 🎉")], usage={**usage, "output_tokens": 2}, model="an-unpriced-model")
    api.call("PUT", "sessions/s1/messages/1/pin/")
    session = AgentSession.objects.get(external_id="s1")
    session_label(session=session, title="Reads a file", tags=["one", "two"], notes="Keep this.")
    comment_create(session=session, turn=1, text="Why this file?\nAnswer it.", author_id=member.pk)
    comment_create(session=session, turn=4, text="Well done.", author_id=member.pk)
    session.refresh_from_db()
    return session


def exported(session: AgentSession) -> bytes:
    return b"".join(session_jsonl(session))


def lines(data: bytes) -> list[dict[str, Any]]:
    """Return the lines without what an import may change."""
    found = [json.loads(line) for line in data.splitlines()]
    return [{name: value for name, value in line.items() if name not in CHANGED} for line in found]


def imported(project: Project, data: bytes) -> AgentSession:
    log = LogFile(name="session.jsonl", data=data)
    importer = recognize(log)
    assert importer is not None
    [session] = importer.read(log)
    assert isinstance(session, ImportedSession)
    return session_import(project=project, imported=session, origin=importer.name).session


def test_another_project_gets_the_same_session(
    pushed: AgentSession, api: Api, stranger_api: Api, other_project: Project
) -> None:
    data = api.get("sessions/s1/export/").getvalue()
    assert stranger_api.post("imports/", data).json()["format"] == "contextapp"
    session = AgentSession.objects.get(project=other_project, external_id="s1")
    before, after = lines(data), lines(exported(session))
    header, rest = after[0], after[1:]
    metadata = {"branch": "fix", "parent_external_id": "parent"}  # which is not imported
    assert header == before[0] | {"parent": None, "metadata": metadata}
    assert rest == before[1:]
    assert {line["type"] for line in rest} == {"system", "turn", "message", "comment"}
    assert [line["from_turn"] for line in rest if line["type"] == "system"] == [0, 2]
    for turn in range(5):
        prompts = [each.get(f"sessions/s1/prompt/?at_turn={turn}").json() for each in (api, stranger_api)]
        first, second = ([one[field] for field in ("system", "tools", "messages")] for one in prompts)
        assert first == second, turn
    assert [turn["components"] for turn in stranger_api.get("sessions/s1/turns/").json()["data"]] == [
        turn["components"] for turn in api.get("sessions/s1/turns/").json()["data"]
    ]
    for name in ("cost_microusd", "unpriced_turns", "output_tokens", "last_prompt_tokens", "turn_count"):
        assert getattr(session, name) == getattr(pushed, name), name
    assert session.pins.get().position == 1


@pytest.mark.slow
def test_a_long_session_is_imported_in_steps(
    pushed: AgentSession, stranger_api: Api, other_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "STEP_MESSAGES", 1)
    monkeypatch.setattr(views, "SMALL_SECONDS", 60.0)
    [row] = stranger_api.post("imports/", exported(pushed)).json()["sessions"]
    assert (row["state"], row["turns"]) == ("new", 5)
    session = AgentSession.objects.get(project=other_project, external_id="s1")
    assert lines(exported(session))[1:] == lines(exported(pushed))[1:]


def test_the_copy_can_be_continued(pushed: AgentSession, stranger_api: Api) -> None:
    stranger_api.post("imports/", exported(pushed))
    prompt = stranger_api.get("sessions/s1/prompt/").json()
    assert prompt["system"] == "You are an expert coder."
    assert [tool["name"] for tool in prompt["tools"]] == ["read_file"]
    assert push(stranger_api, [request("And now?")])["turn"] == 5


@pytest.mark.slow
def test_the_copy_of_a_compacted_session_counts_tokens_like_the_original(api: Api, stranger_api: Api) -> None:
    """The provider reported the sizes of the compacted prompts, but the copy has the whole transcript."""
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 5_000}, "policy": "masking"})
    reported = 400
    for number in range(12):
        pushed = push(api, whole_turn(number), usage={"input_tokens": reported, "output_tokens": 40})
        reported = pushed["prompt"]["tokens"] + 100
    original = api.get("sessions/s1/").json()
    assert original["compactions"] > 0
    stranger_api.post("imports/", exported(AgentSession.objects.get()))
    assert stranger_api.get("sessions/s1/").json()["calibration"] == original["calibration"]


def test_system_prompts_and_tools_that_begin_and_end_later_are_imported(
    api: Api, stranger_api: Api, other_project: Project
) -> None:
    api.post("sessions/", {"id": "s2"})
    versions: list[dict[str, Any]] = [{}, {"system": "Be brief.", "tools": TOOLS}, {"tools": []}, {}]
    for number, fields in enumerate(versions):
        push(api, [request(f"Question {number}."), answer()], session="s2", **fields)
        data = api.get("sessions/s2/export/").getvalue()
        for _ in range(2):
            stranger_api.post("imports/", data)
        session = AgentSession.objects.get(project=other_project, external_id="s2")
        assert lines(exported(session))[1:] == lines(data)[1:]
    assert session.preamble_version == 2
    assert session.shown_components == AgentSession.objects.get(project__slug="alpha").shown_components


@pytest.mark.slow
def test_importing_again_corrects_the_system_prompt_of_earlier_turns(
    pushed: AgentSession, api: Api, stranger_api: Api, other_project: Project
) -> None:
    """An earlier version imported the newest system prompt as that of all turns."""
    data = exported(pushed)
    header, _, newest, *rest = map(json.loads, data.splitlines())
    single = [header, newest | {"from_turn": 0}, *rest]
    for log in (b"\n".join(map(json_bytes, single)), data):
        stranger_api.post("imports/", log)
    session = AgentSession.objects.get(project=other_project, external_id="s1")
    assert lines(exported(session))[1:] == lines(data)[1:]
    turns = [each.get("sessions/s1/turns/").json()["data"] for each in (api, stranger_api)]
    assert [turn["components"] for turn in turns[0]] == [turn["components"] for turn in turns[1]]


@pytest.mark.slow
@pytest.mark.parametrize("turn", [0, 2])
def test_a_system_prompt_applies_although_its_first_turn_is_damaged(
    pushed: AgentSession, stranger_api: Api, turn: int
) -> None:
    log = [line for line in map(json.loads, exported(pushed).splitlines()) if line.get("turn") != turn]
    stranger_api.post("imports/", b"\n".join(map(json_bytes, log)))
    systems = [stranger_api.get(f"sessions/s1/prompt/?at_turn={n}").json()["system"] for n in range(4)]
    first, second = "You are a coder.", "You are an expert coder."
    assert systems == ([first, second, second, second] if turn == 0 else [first, first, second, second])


@pytest.mark.slow
def test_a_session_is_restored_after_it_was_deleted(pushed: AgentSession, project: Project) -> None:
    data = exported(pushed)
    session_delete(session=pushed)
    restored = imported(project, data)
    assert lines(exported(restored))[1:] == lines(data)[1:]
    assert restored.parent is not None
    assert restored.parent.external_id == "parent"


def test_importing_it_where_it_is_changes_nothing(pushed: AgentSession, api: Api) -> None:
    data = exported(pushed)
    response = api.post("imports/", data)
    assert [row["state"] for row in response.json()["sessions"]] == ["unchanged"]
    assert exported(AgentSession.objects.get(pk=pushed.pk)) == data


@pytest.mark.slow
def test_a_longer_export_adds_the_rest(
    pushed: AgentSession, api: Api, stranger_api: Api, other_project: Project
) -> None:
    stranger_api.post("imports/", exported(pushed))
    push(api, [request("Once more.")])
    pushed.refresh_from_db()
    [row] = stranger_api.post("imports/", exported(pushed)).json()["sessions"]
    assert (row["state"], row["turns"]) == ("grown", 1)
    session = AgentSession.objects.get(project=other_project, external_id="s1")
    assert lines(exported(session))[1:] == lines(exported(pushed))[1:]


def test_the_author_of_an_imported_comment_is_not_a_member_here(
    pushed: AgentSession, stranger_api: Api, other_project: Project
) -> None:
    stranger_api.post("imports/", exported(pushed))
    comment = Comment.objects.filter(session__project=other_project).first()
    assert comment is not None
    assert (comment.author, comment.author_name) == (None, "marc (imported)")
    listed = stranger_api.get("sessions/s1/comments/").json()["data"]
    assert {row["author"] for row in listed} == {"marc (imported)"}


def test_what_a_log_reports_survives(project: Project, other_project: Project) -> None:
    """Estimated output, insertions and compactions by the client, and responses billed elsewhere."""
    turns = [
        step(0, usage=USAGE, response_id="msg_0", billed=False),
        replace(step(1, usage=replace(USAGE, output_tokens=1)), messages=[*step(1).messages[:1], LONG]),
        summary("A"),
        step(3, cost_microusd=1_234),
    ]
    turns[3] = replace(turns[3], messages=[message("user", "Hint", "hint", is_meta=True), *turns[3].messages])
    session = take(project, turns, system="Be brief.")
    assert session.turns.filter(output_reported=1).exists()
    copy = imported(other_project, exported(session))
    assert lines(exported(copy)) == lines(exported(session))
    assert copy.context_start == session.context_start > 0
    assert copy.cost_microusd == session.cost_microusd


LONG = message("assistant", "word " * 200, "long")


@pytest.mark.slow
def test_several_exports_can_be_one_file(pushed: AgentSession, stranger_api: Api) -> None:
    parent = AgentSession.objects.get(external_id="parent")
    rows = stranger_api.post("imports/", exported(parent) + exported(pushed)).json()["sessions"]
    assert [row["external_id"] for row in rows] == ["parent", "s1"]
    assert stranger_api.get("sessions/s1/").json()["parent"]


#: A damaged line by its name, and whether it is reported.
DAMAGED = {
    "system": (b'{"type": "system"}', False),
    "system prompt": (b'{"type": "system", "system": 5}', True),
    "tools": (b'{"type": "system", "tools": [1]}', True),
    "turn": (b'{"type": "turn", "turn": {}}', True),
    "endless turn": (b'{"type": "turn", "turn": 1e999}', True),
    "client compaction": (b'{"type": "turn", "turn": 0, "client_compaction": {"trigger": "\\u0000"}}', False),
    "message": (b'{"type": "message", "turn": 0, "position": 0, "message": "text"}', True),
    "comment": (b'{"type": "comment", "turn": {}}', True),
}


@pytest.mark.slow
def test_damaged_lines_are_reported_and_the_rest_is_imported(
    pushed: AgentSession, stranger_api: Api, subtests: pytest.Subtests
) -> None:
    whole = exported(pushed).splitlines(keepends=True)
    kinds = [json.loads(line)["type"] for line in whole]
    for name, (line, is_reported) in DAMAGED.items():
        kind = json.loads(line.replace(b"1e999", b"0"))["type"]
        with subtests.test(name):
            damaged = list(whole)
            damaged[kinds.index(kind)] = line.replace(b"{", b'{"session": "s1", ', 1) + b"\n"
            renamed = b"".join(damaged).replace(b'"s1"', b'"%b"' % name.encode())
            response = stranger_api.post("imports/", renamed).json()
            assert len(response["damages"]) == is_reported
            [row] = response["sessions"]
            assert (row["state"], row["messages"]) == ("new", pushed.message_count - (kind == "message"))


def test_a_message_that_is_there_twice_is_imported_once(pushed: AgentSession, stranger_api: Api) -> None:
    whole = exported(pushed).splitlines(keepends=True)
    repeated = next(line for line in whole if json.loads(line)["type"] == "message")
    response = stranger_api.post("imports/", b"".join([*whole, repeated])).json()
    assert "position 0 appears twice" in response["damages"][0]["reason"]
    assert response["sessions"][0]["messages"] == pushed.message_count


@pytest.mark.slow
def test_a_damaged_first_line_adds_nothing_to_the_session_before_it(
    pushed: AgentSession, stranger_api: Api, subtests: pytest.Subtests
) -> None:
    parent = exported(AgentSession.objects.get(external_id="parent"))
    whole = exported(pushed).splitlines(keepends=True)
    numbered = whole[0].replace(b'"s1"', b"5")
    for header in (whole[0][:40] + b"\n", whole[0].replace(b'"version":1', b'"version":2'), numbered):
        with subtests.test(header=header):
            response = stranger_api.post("imports/", b"".join([parent, header, *whole[1:]])).json()
            assert [row["external_id"] for row in response["sessions"]] == ["parent"]
            assert response["sessions"][0]["messages"] == 0
            assert response["damage_count"] == len(whole)


def test_an_export_has_no_turns_that_are_pushed_meanwhile(pushed: AgentSession, api: Api) -> None:
    before = exported(pushed)
    push(api, [request("Once more.")])
    assert exported(pushed) == before


def test_secrets_in_names_and_in_damaged_lines_are_redacted(api: Api) -> None:
    secret = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    turn = {"request_id": f"r {secret}", "response_id": f"q {secret}"}
    mark = {"client_compaction": {"trigger": f"c {secret}"}}
    message = {"source_id": f"i {secret}", "message": request("Hi.")}
    lines = [
        {"type": "contextapp-session", "version": 1, "session": f"s {secret}", "format": "anthropic"},
        {"type": "turn", "turn": 0, "session": f"s {secret}", **turn, **mark},
        {"type": "message", "turn": 0, "position": 0, "session": f"s {secret}", **message},
        {"type": "comment", "turn": 0, "session": f"s {secret}", "author": f"a {secret}", "comment": "x"},
        {"type": "contextapp-session", "version": f"v {secret}", "session": "t"},
    ]
    imported = api.post("imports/", b"".join(json_bytes(line) + b"\n" for line in lines)).json()
    assert [session["state"] for session in imported["sessions"]] == ["new"]
    assert "version 'v [redacted:github-token:" in imported["damages"][0]["reason"]
    assert Comment.objects.count() == 1
    assert secret.encode() not in everything_stored()


def test_a_newer_version_of_the_format_is_rejected(pushed: AgentSession, stranger_api: Api) -> None:
    newer = exported(pushed).replace(b'"version":1', b'"version":2', 1)
    response = stranger_api.post("imports/", newer).json()
    assert response["sessions"] == []
    assert "version 2" in response["damages"][0]["reason"]


def test_only_the_project_of_a_session_can_export_it(pushed: AgentSession, stranger_api: Api) -> None:
    assert stranger_api.get("sessions/s1/export/").status_code == 404
