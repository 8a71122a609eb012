"""Clients that send their whole history with each call."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from accounts.models import Project
from sessions.models import (
    AgentSession,
    Compaction,
    Edit,
    Message,
    Turn,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)
from sessions.selectors.health.facts import health_facts
from sessions.selectors.redaction import redaction_of
from sessions.services.reconcile.served import edits_for_request
from sessions.services.reconcile.values import Sent
from tests.api.client import Api, code
from tests.api.statements import statements
from tests.api.talk import (
    History,
    answer,
    call,
    history,
    output,
    push,
    reconcile,
    request,
    result,
    whole_turn,
)

pytestmark = pytest.mark.django_db

URL = "sessions/s1/reconcile/"


def stored(api: Api, session: str) -> History:
    pages = api.get(f"sessions/{session}/turns/").json()["data"]
    return [message for turn in pages for message in turn["messages"]]


@pytest.fixture(autouse=True)
def _session(session: dict[str, Any]) -> None:
    """The session `s1`."""


def test_a_new_history_is_stored_and_answered_with_the_prompt(api: Api) -> None:
    served = reconcile(api, history(2), system="Be brief.", model="claude-sonnet-4-5")
    assert served["messages"] == history(2)
    assert served["system"] == "Be brief."
    assert served["reconciled"]["status"] == "appended"
    assert {**served, "reconciled": None} == {**api.get("sessions/s1/prompt/").json(), "reconciled": None}


def test_only_new_messages_are_appended_as_a_turn(api: Api) -> None:
    reconcile(api, history(1))
    usage = {"input_tokens": 40, "cache_read_input_tokens": 300, "output_tokens": 7}
    served = reconcile(api, history(2), usage=usage)
    assert served["reconciled"] | {"session": ""} == {
        "session": "", "status": "appended", "first_new": 4, "turn": 1, "redacted": [],
    }  # fmt: skip
    turns = api.get("sessions/s1/turns/").json()["data"]
    assert [len(turn["messages"]) for turn in turns] == [4, 4]
    assert turns[1]["usage"]["cache_read"] == 300
    assert stored(api, "s1") == history(2)


def test_the_same_history_changes_nothing(api: Api) -> None:
    first = reconcile(api, history(2))
    again = reconcile(api, history(2))
    assert again["reconciled"]["status"] == "unchanged"
    assert again["messages"] == first["messages"]
    assert Turn.objects.count() == 1


def chat_call(arguments: str) -> History:
    function = {"name": "read", "arguments": arguments}
    calls = [{"id": "c1", "type": "function", "function": function}]
    return [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "x = 1"},
    ]


def responses_call(arguments: str) -> History:
    return [
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": arguments},
        {"type": "function_call_output", "call_id": "c1", "output": "x = 1"},
    ]


@pytest.mark.parametrize("called", [chat_call, responses_call], ids=["chat", "responses"])
def test_arguments_that_a_framework_serializes_again_do_not_matter(
    api: Api, called: Callable[[str], History]
) -> None:
    asked, *_ = called('{"path":"größe.py","lines":[1,2]}')
    again = called('{"path": "gr\\u00f6\\u00dfe.py", "lines": [1, 2]}')
    reconcile(api, [request("Read größe.py"), asked])
    assert reconcile(api, [request("Read größe.py"), *again])["reconciled"]["status"] == "appended"
    assert stored(api, "s1") == [request("Read größe.py"), asked, again[1]]


def test_cache_breakpoints_thinking_and_the_form_of_content_do_not_matter(api: Api) -> None:
    thinking = {"type": "thinking", "thinking": "The user wants files.", "signature": "c2ln"}
    sent = call("toolu_1", path="a.py")
    sent["content"].insert(0, thinking)
    reconcile(api, [request("Read a.py"), sent, result("toolu_1", "x = 1")])
    rewritten = [
        {"role": "user", "content": [{"type": "text", "text": "Read a.py"}]},
        call("toolu_1", path="a.py"),
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": "x = 1"}],
                    "is_error": False,
                    "cache_control": {"type": "ephemeral"},
                }
            ],
        },
        answer("It sets x."),
    ]
    served = reconcile(api, rewritten)
    assert served["reconciled"]["status"] == "appended"
    assert served["reconciled"]["first_new"] == 3
    assert stored(api, "s1")[1] == sent


def test_an_edited_request_forks_a_session_that_shares_the_beginning(api: Api) -> None:
    reconcile(api, history(3), model="claude-sonnet-4-5", usage={"input_tokens": 900, "output_tokens": 5})
    changed = [*history(1), request("Rather read file 7."), answer("It is empty.")]
    served = reconcile(api, changed)
    made = served["reconciled"]
    assert made["status"] == "forked"
    assert served["messages"] == changed
    child, parent = AgentSession.objects.get(pk=made["session"]), AgentSession.objects.get(external_id="s1")
    assert (child.parent_id, child.forked_at) == (parent.pk, 4)
    assert stored(api, "s1") == history(3)
    assert stored(api, made["session"]) == changed
    assert child.cost_microusd == 0
    turns = api.get(f"sessions/{child.pk}/turns/").json()["data"]
    assert [turn["billed"] for turn in turns] == [False, True]


def test_a_fork_is_continued_under_the_name_of_its_root(api: Api) -> None:
    reconcile(api, history(3))
    changed = [*history(1), request("Rather read file 7."), answer("It is empty.")]
    fork = reconcile(api, changed)["reconciled"]["session"]
    further = reconcile(api, [*changed, request("And file 8?"), answer("No such file.")])
    assert further["reconciled"] | {"redacted": []} == {
        "session": fork, "status": "appended", "first_new": 6, "turn": 2, "redacted": [],
    }  # fmt: skip
    main = reconcile(api, history(4))
    assert main["reconciled"]["status"] == "appended"
    assert main["messages"] == history(4)
    assert AgentSession.objects.count() == 2


def test_a_fork_after_a_cache_breakpoint_keeps_all_messages_before_it(api: Api) -> None:
    """Another fork ends before the breakpoint, so only the root has the messages up to it."""
    reconcile(api, history(2))
    assert reconcile(api, history(2)[:-1])["reconciled"]["status"] == "forked"
    cached = {"type": "text", "text": "And file 7?", "cache_control": {"type": "ephemeral"}}
    reconcile(api, [*history(3), {"role": "user", "content": [cached]}])
    other = {"role": "user", "content": [{**cached, "text": "And file 8?"}]}
    assert reconcile(api, [*history(3), other])["messages"] == [*history(3), other]


@pytest.mark.slow
def test_a_fork_keeps_the_compactions_before_it(api: Api) -> None:
    api.post("sessions/", {"id": "s2", "budget": {"input_tokens": 6_000}})
    long: History = []
    compactions = [0]
    while not compactions[-1] or compactions[-1] != compactions[-2]:  # the last turn compacted nothing
        long += whole_turn(len(compactions), lines=40)
        before = reconcile(api, long, "s2")
        compactions.append(before["compactions"])
    forked = reconcile(api, [*long[:-4], request("Something else")], "s2")
    assert forked["reconciled"]["status"] == "forked"
    assert forked["compactions"] == before["compactions"]
    shared = json.dumps(before["messages"][:-4])[:-1]
    assert json.dumps(forked["messages"]).startswith(shared)
    handles = api.get(f"sessions/{forked['reconciled']['session']}/compactions/").json()["data"]
    assert len(handles) >= before["compactions"]


@pytest.mark.slow
def test_a_fork_can_be_read_after_its_parent_was_deleted(api: Api, admin_api: Api) -> None:
    """The text of a recap is stored as what differs from the previous one."""
    api.post("sessions/", {"id": "s2", "budget": {"input_tokens": 4_000}, "policy": {"tail_share": 0.1}})
    long: History = []
    before: dict[str, Any] = {"compactions": 0}
    while before["compactions"] < 4:
        words = " ".join(f"Parcel {len(long)}-{n} goes to zone {n % 7}." for n in range(60))
        long += [request(f"Tell me of batch {len(long)}."), answer(words)]
        before = reconcile(api, long, "s2")
    assert Edit.objects.filter(bases__isnull=False).exists()
    forked = reconcile(api, [*long, request("Go on."), answer("No.")], "s2")
    forked = reconcile(api, [*long, request("Something else")], "s2")
    fork = forked["reconciled"]["session"]
    assert admin_api.delete("sessions/s2/").status_code == 204
    assert api.get(f"sessions/{fork}/prompt/").json()["messages"] == forked["messages"]
    numbers = [row["number"] for row in api.get(f"sessions/{fork}/compactions/").json()["data"]]
    found = [api.get(f"sessions/{fork}/compactions/{number}/") for number in numbers]
    assert [response.status_code for response in found] == [200] * len(numbers)


@pytest.mark.slow
def test_a_fork_keeps_the_working_memory_of_that_point(api: Api) -> None:
    memory = {"task": "Read the files", "decisions": ["Begin with file 0"]}
    reconcile(api, history(1))
    assert api.patch("sessions/s1/memory/", memory, if_match="*").status_code == 200
    reconcile(api, history(2))
    assert api.patch("sessions/s1/memory/", {"decisions": ["Skip file 1"]}, if_match="*").status_code == 200
    fork = reconcile(api, [*history(1), request("Rather read file 7.")])["reconciled"]["session"]
    shown = api.get(f"sessions/{fork}/memory/").json()
    assert (shown["memory"]["task"], shown["memory"]["decisions"]) == (memory["task"], memory["decisions"])
    assert api.patch(f"sessions/{fork}/memory/", {"next": "Read file 7"}, if_match="*").status_code == 200
    assert api.get("sessions/s1/memory/").json()["memory"]["decisions"] == ["Skip file 1"]


@pytest.mark.parametrize(
    ("first", "fields"),
    [
        ("This session is being continued from a previous conversation that ran out of context.", {}),
        ("We read three files so far.", {"compacted": True}),
    ],
    ids=["recognized", "announced"],
)
def test_a_compaction_by_the_client_is_a_marker_and_not_a_fork(
    api: Api, first: str, fields: dict[str, Any]
) -> None:
    reconcile(api, history(3), usage={"input_tokens": 9_000, "output_tokens": 3})
    new = [request(first), answer("Going on."), request("Read file 9.")]
    served = reconcile(api, new, **fields)
    assert served["reconciled"]["status"] == "compacted"
    assert served["messages"] == new
    session = AgentSession.objects.get()
    marked = session.turns.get(client_compaction__isnull=False)
    assert marked.client_compaction == {"trigger": "auto", "tokens_before": 9_000}
    assert stored(api, "s1") == [*history(3), *new]
    further = reconcile(api, [*new, answer("It is short.")])
    assert further["reconciled"]["status"] == "appended"
    assert further["messages"] == [*new, answer("It is short.")]


def test_changed_messages_replace_the_stored_ones_if_the_client_announces_it(api: Api) -> None:
    reconcile(api, history(2))
    changed = [*history(2)[:4], request("Please read file 1 again."), *history(2)[5:], request("And now?")]
    served = reconcile(api, changed, compacted=True)
    assert served["reconciled"]["status"] == "compacted"
    assert served["messages"] == changed


def test_messages_that_the_client_drops_are_removed_from_the_prompt(api: Api) -> None:
    reconcile(api, history(3))
    kept = [*history(3)[4:], request("And now?")]
    served = reconcile(api, kept)
    assert served["reconciled"]["status"] == "compacted"
    assert served["messages"] == kept
    assert AgentSession.objects.get().message_count == 13
    [compaction] = Compaction.objects.all()
    assert compaction.trigger == "client"
    assert reconcile(api, [*kept, answer("Fine.")])["reconciled"]["status"] == "appended"


@pytest.mark.slow
def test_a_rewind_does_not_bring_back_messages_that_the_client_had_dropped(api: Api) -> None:
    whole = [request("Start.")]
    for number in range(6):
        whole += [answer(f"Answer {number}."), request(f"Question {number}?")]
        reconcile(api, whole)
    trimmed = [*whole[:1], *whole[8:], answer("A new answer."), request("A new question?")]
    reconcile(api, trimmed)
    rewound = [*trimmed[:5], request("Another way?")]
    served = reconcile(api, rewound)
    assert served["reconciled"]["status"] == "forked"
    assert served["messages"] == rewound
    further = reconcile(api, [*rewound, answer("Yes."), request("Go on.")])
    assert further["reconciled"]["status"] == "appended"
    assert further["messages"] == [*rewound, answer("Yes."), request("Go on.")]


def test_outputs_that_the_client_cleared_in_place_are_still_recognized(api: Api) -> None:
    reconcile(api, history(3))
    cleared = history(3)
    cleared[2] = result("toolu_00000", "[Old tool result content cleared]")
    served = reconcile(api, [*cleared, request("Next.")])
    assert served["reconciled"]["status"] == "appended"
    assert served["messages"][2] == history(3)[2]
    assert reconcile(api, [*cleared, request("Next."), answer("Yes.")])["reconciled"]["status"] == "appended"


def test_a_new_system_prompt_and_tools_replace_those_before(api: Api) -> None:
    """Also without new messages, and after a rewind to a point before the change."""
    one, two = (
        {"system": text, "tools": [{"name": text, "input_schema": {"type": "object"}}]} for text in "ab"
    )
    reconcile(api, history(2), **one)
    for status in ("appended", "unchanged"):
        changed = reconcile(api, history(2), **two)
        assert changed["reconciled"]["status"] == status
        assert (changed["system"], changed["tools"]) == (two["system"], two["tools"])
    served = reconcile(api, [*history(1), request("Rather read file 7.")], **two)
    assert served["reconciled"]["status"] == "forked"
    assert (served["system"], served["tools"]) == (two["system"], two["tools"])
    versions = AgentSession.objects.get(forked_at__isnull=False).preamble_version
    again = reconcile(api, [*history(1), request("Rather read file 7."), answer("Yes.")], **two)
    assert (again["system"], again["tools"]) == (two["system"], two["tools"])
    assert AgentSession.objects.get(forked_at__isnull=False).preamble_version == versions


def test_a_side_request_neither_extends_nor_forks(api: Api) -> None:
    reconcile(api, history(3))
    title = reconcile(api, [request("Write a title for: Please read file 0.")])
    assert title["reconciled"]["status"] == "side"
    summary = [*history(3), request("Your task is to create a detailed summary of the conversation so far.")]
    assert reconcile(api, summary)["reconciled"]["status"] == "side"
    assert stored(api, "s1") == history(3)
    served = reconcile(api, history(4))
    assert served["reconciled"]["status"] == "appended"
    assert served["messages"] == history(4)
    assert set(AgentSession.objects.exclude(external_id="s1").values_list("forked_at", flat=True)) == {None}


def test_messages_pushed_before_are_recognized(api: Api) -> None:
    secret = "AKIA" + "ABCDEFGHIJKLMNOP"
    said = [request(f"The key is {secret}."), answer("Noted.")]
    push(api, said)
    served = reconcile(api, [*said, request("Use it.")])
    assert served["reconciled"]["status"] == "appended"
    assert served["reconciled"]["first_new"] == 2
    push(api, [answer("Used.")])
    assert reconcile(api, [*said, request("Use it."), answer("Used.")])["reconciled"]["status"] == "unchanged"
    assert secret not in json.dumps(stored(api, "s1"))


def test_openai_histories_survive_a_changed_system_prompt(api: Api) -> None:
    api.post("sessions/", {"id": "s2"})
    function = {"name": "read_file", "arguments": '{"path": "a.py"}'}
    said: History = [
        {"role": "system", "content": "It is 9:41."},
        {"role": "user", "content": "Read a.py"},
        {
            "role": "assistant",
            "content": None,
            "refusal": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "x = 1"},
    ]
    reconcile(api, said, "s2")
    later: History = [{"role": "system", "content": "It is 9:42."}, *said[1:], answer("It sets x.")]
    del later[2]["refusal"]
    served = reconcile(api, later, "s2")
    assert (served["format"], served["reconciled"]["status"]) == ("openai", "appended")


def test_messages_of_a_single_request_are_removed_from_the_prompt(api: Api) -> None:
    """Some clients add the time at the end of each request, and do not keep it."""
    said: History = []
    for number in range(4):
        said += [request(f"Read file {number}.")]
        reconcile(api, [*said, request(f"It is 9:4{number}.")])
        push(api, [answer(f"File {number} is empty.")])
        said += [answer(f"File {number} is empty.")]
    served = reconcile(api, [*said, request("And now?")])
    assert served["reconciled"]["status"] == "appended"
    assert served["messages"] == [*said, request("And now?")]
    assert AgentSession.objects.count() == 1


def with_once(api: Api, turns: int, session: str) -> History:
    """Send requests with a last message that the client does not keep, and return what it keeps."""
    api.post("sessions/", {"id": session})
    said: History = []
    for number in range(turns):
        said += [request(f"Read file {number}.")]
        reconcile(api, [*said, request("It is late.")], session)
        push(api, [answer(f"File {number} is empty.")], session)
        said += [answer(f"File {number} is empty.")]
    return said


@pytest.mark.slow
def test_a_fork_after_many_messages_of_single_requests_takes_no_more_statements(api: Api) -> None:
    taken = []
    for turns in (4, 9):
        said = with_once(api, turns, f"s{turns}")
        changed = [*said[:-1], answer("File 0 is large."), request("Go on.")]
        taken.append(len(statements(lambda: reconcile(api, changed, f"s{turns}"))))  # noqa: B023
        fork = AgentSession.objects.get(parent__external_id=f"s{turns}")
        assert fork.omitted_count >= turns - 2
        assert api.get(f"sessions/{fork.pk}/prompt/").json()["messages"] == changed
    assert taken[0] == taken[1]


@pytest.mark.slow
def test_messages_of_a_single_request_do_not_delay_compactions_or_hide_what_they_save(
    api: Api, project: Project
) -> None:
    Webhook.objects.create(project=project, url="http://hooks.test/", events=list(WebhookEvent.values))
    api.post("sessions/", {"id": "s2", "budget": {"input_tokens": 4_000}})
    said: History = []
    for number in range(30):
        said += [request(f"Read file {number}. " + f"line {number} " * 30)]
        reconcile(api, [*said, request("It is late.")], "s2")
        push(api, [answer(f"File {number} is empty. " * 20)], "s2")
        said += [answer(f"File {number} is empty. " * 20)]
    session = AgentSession.objects.get(external_id="s2")
    own = session.compactions.exclude(trigger="client")
    assert own.count() >= 2
    assert session.compactions.count() == own.count()
    assert max(session.turns.values_list("prompt_served", flat=True)) <= 4_000
    rows = Message.objects.filter(session=session).order_by("position")
    tokens = list(rows.values_list("tokens", flat=True))
    assert sum(session.context_components.values()) == sum(tokens) - 29 * tokens[1]
    events = WebhookDelivery.objects.values_list("compaction__trigger", flat=True)
    assert set(events) == {own[0].trigger}
    assert len(health_facts([session.pk])[session.pk].numbers) == own.count()


def test_answers_with_other_calls_in_the_deprecated_field_are_other_answers(api: Api) -> None:
    def said(path: str) -> History:
        call = {"name": "read_file", "arguments": json.dumps({"path": path})}
        return [
            {"role": "user", "content": "Read a file."},
            {"role": "assistant", "content": None, "function_call": call},
            {"role": "function", "name": "read_file", "content": f"The content of {path}"},
        ]

    reconcile(api, said("a.py"))
    served = reconcile(api, [*said("b.py"), request("And now?")])
    assert served["reconciled"]["status"] == "forked"
    assert "a.py" not in json.dumps(served["messages"])


def test_a_fork_has_the_reasoning_of_its_own_answer(api: Api) -> None:
    def answered(name: str) -> History:
        reasoning = {"type": "reasoning", "id": f"rs_{name}", "summary": [], "encrypted_content": name}
        said = {"type": "message", "role": "assistant", "id": f"msg_{name}"}
        return [reasoning, said | {"content": [{"type": "output_text", "text": name, "annotations": []}]}]

    api.post("sessions/", {"id": "s2", "model": "gpt-5"})
    reconcile(api, [request(), *answered("first")], "s2")
    again = [request(), *answered("second"), request("Go on.")]
    served = reconcile(api, again, "s2")
    assert served["reconciled"]["status"] == "forked"
    assert served["messages"] == again
    assert reconcile(api, [*again, *answered("third")], "s2")["reconciled"]["status"] == "appended"


@pytest.mark.parametrize("place", ["end", "nowhere"])
def test_an_append_reads_no_stored_message(api: Api, place: str) -> None:
    api.post("sessions/", {"id": "s2", "policy": {"preset": "off"}})
    counts = []
    for turns in (2, 3, 60, 61):
        messages = history(turns)
        if place == "end":  # the client's cache breakpoint moves with each request
            messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        found = statements(lambda: reconcile(api, messages, "s2"))  # noqa: B023
        assert not any("content_hash FROM" in sql for sql in found)
        counts.append(len(found))
    assert counts[3] <= counts[1] <= 16
    assert Message.objects.filter(content_hash=None).count() == 0


def test_edits_are_found_if_a_call_is_recorded_after_the_session_was_read(api: Api) -> None:
    """The gateway reads them for the next request while it records the last call."""
    reconcile(api, history(1))
    before = AgentSession.objects.get(external_id="s1")
    reconcile(api, history(2))
    body = json.dumps({"messages": history(3)}).encode()
    edits = edits_for_request(
        before.pk, body, name="s1", sent=Sent(), redaction=redaction_of(before.project), field="messages"
    )
    assert edits.history.count == len(history(2))


def test_edits_fit_a_model_that_counts_more_tokens(api: Api) -> None:
    fields = {"id": "s2", "model": "gpt-4o", "format": "anthropic", "budget": {"input_tokens": 3_000}}
    assert api.post("sessions/", fields).status_code == 201
    turns = occupancy = 0
    while occupancy < 0.85:
        turns += 1
        usage = {"input_tokens": round(3_000 * occupancy) or 100, "output_tokens": 3}
        occupancy = reconcile(api, history(turns), session="s2", usage=usage)["occupancy"]
    session = AgentSession.objects.get(external_id="s2")
    assert (session.compactions.count(), occupancy < 0.95) == (0, True)
    body = json.dumps({"messages": [*history(turns), request("Go on.")]}).encode()
    sent = Sent(model="claude-sonnet-4-5")
    redaction = redaction_of(session.project)
    edits = edits_for_request(session.pk, body, name="s2", sent=sent, redaction=redaction, field="messages")
    assert 1.25 * edits.shown <= 3_000
    after = AgentSession.objects.get(external_id="s2")
    assert after.compactions.get().trigger == "hard"
    assert (after.budget_tokens, after.calibration) == (3_000, session.calibration)


def test_retries_with_the_same_idempotency_key_are_stored_once(api: Api) -> None:
    body = {"messages": history(1)}
    for _ in range(2):
        assert api.post(URL, body, idempotency_key="k1").status_code == 200
    changed = api.post(URL, {"messages": history(2)}, idempotency_key="k1")
    assert (changed.status_code, changed.json()["error"]["code"]) == (422, "idempotency_mismatch")
    assert Turn.objects.count() == 1


def test_the_idempotency_key_of_a_push_is_not_that_of_a_history(api: Api) -> None:
    api.post(f"{URL.removesuffix('reconcile/')}turns/", {"messages": history(1)}, idempotency_key="k1")
    reused = api.post(URL, {"messages": history(2)}, idempotency_key="k1")
    assert (reused.status_code, reused.json()["error"]["code"]) == (422, "idempotency_mismatch")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, "invalid_field"),
        ({"messages": "all"}, "invalid_field"),
        ({"messages": []}, "invalid_field"),
        ({"messages": [{"role": "user"}]}, "invalid_message"),
        ({"messages": [{"role": {}, "content": "x"}]}, "invalid_message"),
        ({"messages": [{"role": "user", "content": [{"type": []}]}]}, "invalid_message"),
        ({"messages": [], "history": []}, "unknown_field"),
        ({"messages": [], "compacted": "yes"}, "invalid_field"),
        ({"messages": [], "tools": "none"}, "invalid_field"),
    ],
)
def test_invalid_histories_are_rejected(api: Api, body: dict[str, Any], expected: str) -> None:
    response = api.post(URL, body)
    assert (response.status_code, code(response)) == (400, expected)
    assert Turn.objects.count() == 0


@pytest.mark.parametrize("field", ["messages", "metadata"])
def test_deeply_nested_json_is_rejected(api: Api, field: str) -> None:
    reconcile(api, history(1))
    body = {"messages": b"[]", field: b"[" * 5_000 + b"]" * 5_000}
    pairs = b",".join(b'"%b":%b' % (name.encode(), value) for name, value in body.items())
    response = api.post(URL, b"{" + pairs + b"}")
    assert (response.status_code, code(response)) == (400, "too_deep")


def test_another_projects_session_is_not_reached(stranger_api: Api, api: Api) -> None:
    reconcile(api, history(1))
    assert stranger_api.post(URL, {"messages": history(1)}).status_code == 404


def test_a_body_that_is_read_from_its_middle_is_still_checked(api: Api) -> None:
    messages = json.dumps(history(2))
    assert api.post(URL, f'{{"messages": {messages}}}'.encode()).status_code == 200
    for rest in (', {"role": "user", "content": "x"', ', {"role": 1}]}', '], "messages": 1}', "]"):
        broken = f'{{"messages": {messages[:-1]}{rest}'.encode()
        assert api.post(URL, broken).status_code == 400, rest
    assert stored(api, "s1") == history(2)


def test_large_outputs_are_stored_once_and_compared_by_content(api: Api) -> None:
    said = [*history(1), request("More"), call("toolu_9", path="b"), result("toolu_9", output(9, 2_000))]
    reconcile(api, said)
    fork = reconcile(api, [*said[:-1], result("toolu_9", output(9, 2_000) + "!")])
    assert fork["reconciled"]["status"] == "forked"
