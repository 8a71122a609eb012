"""Edit a recap: later prompts, earlier prompts, and both versions."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import AuditEvent
from sessions.models import Compaction, Recap
from sessions.selectors.compactions.recaps import recap_lines, recaps
from tests.api.client import Api, code
from tests.api.talk import PROMPT, answer, openai_turn, prompt, push, request
from tests.plugins.reused import reused

RECAP = "sessions/s1/compactions/1/recap/"
WRITTEN = """## Decisions
- parcels over 30 kg go by freight
## Entities
- src/file_0.py: holds the rates
## Open items
- [open] the tariff of 2027
a line of its own"""

#: Compacts only on request. Only a recap helps, because the texts are prose.
BY_HAND = {"soft": 0, "hard": 0, "tail_share": 0.01, "target": 0.05}


@reused(autouse=True)
def session(api: Api) -> dict[str, Any]:
    fields = {"id": "s1", "policy": BY_HAND, "budget": {"input_tokens": 6_000}}
    made: dict[str, Any] = api.post("sessions/", fields).json()
    return made


def chat(number: int) -> list[dict[str, Any]]:
    words = " ".join(f"parcel {number}-{n} goes to zone {n % 7}." for n in range(40))
    return [request(f"Tell me of batch {number}."), answer(words)]


@reused
def compacted(api: Api) -> dict[str, Any]:
    for number in range(8):
        push(api, chat(number))
    done: dict[str, Any] = api.post("sessions/s1/compact/", {}).json()
    assert done["recap"], done
    return done


def written(api: Api, text: str = WRITTEN, number: int = 1) -> dict[str, Any]:
    response = api.post(f"sessions/s1/compactions/{number}/recap/", {"text": text})
    assert response.status_code == 200, response.content
    result: dict[str, Any] = response.json()
    return result


def test_the_prompt_contains_the_new_text(api: Api, compacted: dict[str, Any]) -> None:
    result = written(api)
    assert (result["number"], result["state"], result["trigger"]) == (2, "done", "edit")
    for line in WRITTEN.splitlines():
        assert line.removeprefix("a ") in result["recap"]
    served = prompt(api)
    assert result["recap"] in str(served["messages"]).replace("\\n", "\n")
    assert compacted["recap"] not in str(served["messages"]).replace("\\n", "\n")
    assert served["tokens"] == result["tokens_after"]


def test_head_and_tail_are_unchanged(api: Api, compacted: dict[str, Any]) -> None:
    before = prompt(api)["messages"]
    record = written(api)["record"]
    after = prompt(api)["messages"]
    assert len(before) == len(after)
    assert [old == new for old, new in zip(before, after, strict=True)].count(False) == 1
    assert record["head_verbatim"] is record["tail_verbatim"] is True


def test_earlier_turns_keep_the_old_recap(api: Api, compacted: dict[str, Any]) -> None:
    push(api, chat(8))
    then = api.get(PROMPT).json()
    push(api, chat(9))
    written(api)
    assert api.get(f"{PROMPT}?at_turn=8").json()["messages"] == then["messages"]
    now = api.get(PROMPT).json()["messages"]
    assert api.get(f"{PROMPT}?at_turn=9").json()["messages"] == now
    push(api, chat(10))
    assert api.get(f"{PROMPT}?at_turn=9").json()["messages"] == now


def test_both_versions_are_kept_with_their_authors(api: Api, compacted: dict[str, Any]) -> None:
    written(api)
    written(api, "- short", number=2)
    rows = Recap.objects.order_by("compaction__number").values_list("version", "author")
    assert list(rows) == [(1, "extractor"), (2, "person"), (3, "person")]
    assert api.get("sessions/s1/compactions/1/").json()["recap"] == compacted["recap"]
    assert AuditEvent.objects.filter(action="recap.edited").count() == 2


@pytest.mark.slow
def test_reverting_restores_the_old_recap(api: Api, compacted: dict[str, Any]) -> None:
    before = prompt(api)
    written(api)
    assert api.post("sessions/s1/compactions/2/revert/").status_code == 200
    assert prompt(api)["messages"] == before["messages"]
    assert written(api)["number"] == 3


def test_the_etag_changes(api: Api, compacted: dict[str, Any]) -> None:
    etag = api.get(PROMPT)["ETag"]
    written(api)
    assert api.get(PROMPT, if_none_match=etag).status_code == 200


@pytest.mark.slow
def test_the_next_compaction_merges_it(api: Api, compacted: dict[str, Any]) -> None:
    written(api)
    for number in range(10, 18):
        push(api, chat(number))
    result = api.post("sessions/s1/compact/", {}).json()
    for words in ("parcels over 30 kg go by freight", "the tariff of 2027", "line of its own"):
        assert words in result["recap"]


def choices(api: Api) -> None:
    for number in range(1, 5):
        written(api, f"## Decisions\n- choice {number} is to be kept", number=number)


@pytest.mark.slow
def test_the_newest_are_stored_whole_and_all_can_be_read(api: Api, compacted: dict[str, Any]) -> None:
    choices(api)
    rows = list(recaps().order_by("compaction__number"))
    assert [row.body is None for row in rows] == [True, True, True, False, False]
    oldest, *others = map(recap_lines, rows)
    assert oldest.text in compacted["recap"]
    assert all(line in oldest.text for _, lines in oldest.sections for line, _ in lines)
    assert any(sources for _, lines in oldest.sections for _, sources in lines)
    assert [lines for result in others for _, lines in result.sections] == [
        [[f"- choice {number} is to be kept", [11]]] for number in range(1, 5)
    ]


@pytest.mark.slow
def test_after_reverts_the_next_compaction_merges_the_visible_recap(
    api: Api, compacted: dict[str, Any]
) -> None:
    choices(api)
    for number in (5, 4, 3):
        assert api.post(f"sessions/s1/compactions/{number}/revert/").status_code == 200
    for number in range(10, 18):
        push(api, chat(number))
    result = api.post("sessions/s1/compact/", {}).json()["recap"]
    assert "choice 1 is to be kept" in result
    assert "choice 2" not in result


def test_the_working_memory_is_kept_with_it(api: Api, compacted: dict[str, Any]) -> None:
    api.patch("sessions/s1/memory/", {"task": "count the parcels"}, if_match="*")
    result = written(api, "- short\n\n[Working memory]\nTask: something else")
    assert "[Working memory]" not in result["recap"]
    served = str(prompt(api)["messages"])
    assert served.count("[Working memory]") == 1
    assert "count the parcels" in served
    assert "something else" not in served


def test_secrets_are_redacted(api: Api, compacted: dict[str, Any]) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    assert secret not in str(written(api, f"- the token is {secret}"))
    assert secret not in str(prompt(api))


def test_only_the_visible_recap_can_be_edited(api: Api, compacted: dict[str, Any]) -> None:
    written(api)
    assert code(api.post(RECAP, {"text": "- again"})) == "not_editable"
    assert api.post("sessions/s1/compactions/9/recap/", {"text": "- again"}).status_code == 404


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, "missing_field"),
        ({"text": ""}, "invalid_field"),
        ({"text": "## Decisions\n"}, "invalid_field"),
        ({"text": "a\0b"}, "invalid_field"),
        ({"text": "- x", "author": "me"}, "unknown_field"),
        ({"text": "word " * 9_000}, "text_too_long"),
    ],
)
def test_invalid_texts_are_rejected(api: Api, compacted: dict[str, Any], body: Any, expected: str) -> None:
    assert code(api.post(RECAP, body)) == expected
    assert Compaction.objects.count() == 1


def test_a_recap_cannot_be_edited_while_a_compaction_is_open(api: Api, compacted: dict[str, Any]) -> None:
    row = Compaction.objects.get()
    Compaction.objects.create(
        session=row.session, number=2, trigger="soft", turn_index=7, snapshot_position=1
    )
    assert code(api.post(RECAP, {"text": "- x"})) == "compaction_open"


@pytest.mark.slow
def test_it_works_in_the_openai_format(api: Api) -> None:
    api.post(
        "sessions/", {"id": "o", "format": "openai", "policy": BY_HAND, "budget": {"input_tokens": 2_000}}
    )
    for number in range(6):
        push(api, openai_turn(number), session="o")
    assert api.post("sessions/o/compact/", {}).json()["recap"]
    result = api.post("sessions/o/compactions/1/recap/", {"text": WRITTEN})
    assert result.status_code == 200
    assert "parcels over 30 kg" in str(prompt(api, session="o")["messages"])


def test_a_read_only_key_cannot_edit(api: Api, reader_api: Api, compacted: dict[str, Any]) -> None:
    assert code(reader_api.post(RECAP, {"text": "- x"})) == "missing_scope"


@pytest.mark.slow
def test_the_recaps_of_all_compactions_can_be_read(api: Api) -> None:
    shown = []
    for number in range(6):
        for each in range(8):
            push(api, chat(8 * number + each))
        assert api.post("sessions/s1/compact/", {}).json()["recap"]
        shown.append(prompt(api)["messages"])
    for number, messages in enumerate(shown, 1):
        recap = api.get(f"sessions/s1/compactions/{number}/").json()["recap"]
        assert recap in str(messages).replace("\\n", "\n")
    for number in range(6, 1, -1):
        api.post(f"sessions/s1/compactions/{number}/revert/")
        assert prompt(api)["messages"][:2] == shown[number - 2][:2]
