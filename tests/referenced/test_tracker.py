"""Track hidden identifiers and the messages that refer to them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.dialects import parse
from compaction.edits import Edit, Op
from compaction.identifiers.extract import references
from compaction.messages import Message, Role
from compaction.referenced import MAX_REFERENCES, How, ReferenceTracker, WatchedEdit, with_references
from compaction.referenced.hidden import is_distinctive
from compaction.referenced.tracker import LATER_TURNS, MAX_NAMES
from compaction.view import View, apply

PATH = "src/pool/evict.py"
NAME = "evict_idle_connections"


def message(position: int, item: dict[str, Any]) -> Message:
    [value] = parse([item], format="openai", start_position=position, turn=position)
    return value


def says(position: int, text: str, *calls: tuple[str, dict[str, Any]]) -> Message:
    made = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, (name, arguments) in enumerate(calls)
    ]
    return message(position, {"role": "assistant", "content": text} | ({"tool_calls": made} if made else {}))


def output(position: int, text: str) -> Message:
    return message(position, {"role": "tool", "tool_call_id": "c0", "content": text})


class Messages(dict[int, Message]):
    def is_by_assistant(self, position: int) -> bool:
        return self[position].role is Role.ASSISTANT


def with_hidden(edit: Edit, messages: Sequence[Message], view: View) -> Edit:
    [full] = with_references([edit], Messages((message.position, message) for message in messages), view)
    return full


def evicted(names: tuple[str, ...] = (PATH, NAME)) -> Edit:
    return Edit(strategy="recap", op=Op.EVICT, position=1, end=4, references=names)


def collapsed() -> Edit:
    return Edit(
        strategy="collapse", op=Op.REPLACE, position=2, end=2, part=0, handle="h_1a2b", references=(NAME,)
    )


def watching(*edits: Edit) -> ReferenceTracker:
    watch = ReferenceTracker()
    watch.add_edits([WatchedEdit(key=n, edit=edit, paths=[PATH]) for n, edit in enumerate(edits)])
    return watch


@pytest.mark.parametrize(
    "name",
    [
        PATH,
        "/home/ada/work/report.csv",
        NAME,
        "evictIdleConnections",
        "https://issues.acme.io/browse/POOL-77",
        "ada@acme.io",
        "98231",
        "9f86d081884c",
    ],
)
def test_distinctive_identifiers(name: str) -> None:
    assert is_distinctive(name)


@pytest.mark.parametrize(
    "name",
    ["README.md", "/dev/null", "os.path.join", "strings.Contains", "PostgreSQL", "200", "10000", "a1b2c3d4"],
)
def test_common_identifiers(name: str) -> None:
    assert not is_distinctive(name)


def test_identifiers_missing_from_the_prompt_are_hidden() -> None:
    messages = [
        message(0, {"role": "user", "content": "Look at src/pool/evict.py please."}),
        says(1, "I call stillShownFunction and see.", ("read_file", {"path": PATH})),
        output(2, f"def {NAME}(): uses stillShownFunction and neverMentionedAgain"),
        says(3, "It is stillShownFunction that matters."),
    ]
    edit = Edit(strategy="drop_oldest", op=Op.EVICT, position=1, end=2, text="")
    full = with_hidden(edit, messages[1:3], apply([edit], messages))
    assert full.references == (NAME, "neverMentionedAgain")


WORDS = st.sampled_from([PATH, "pool/evict.py", NAME, "idle_connections", "98231", "x98231y"])
TEXTS = st.lists(WORDS | st.sampled_from([" ", "\n", "\\n", "→", ":", "-", "é"]), max_size=8).map("".join)


@given(TEXTS, TEXTS)
def test_a_name_is_hidden_if_the_prompt_does_not_contain_it(removed: str, shown: str) -> None:
    messages = [output(1, removed), says(2, shown)]
    edit = Edit(strategy="drop_oldest", op=Op.EVICT, position=1, end=1)
    full = with_hidden(edit, messages[:1], apply([edit], messages))
    assert set(full.references) == {
        name for name in references(removed) if is_distinctive(name) and name not in shown
    }


def test_the_assistants_names_come_first() -> None:
    many = " ".join(f"some_long_name_{n:03}" for n in range(200))
    messages = [says(1, "I made own_name_of_mine."), output(2, many)]
    edit = Edit(strategy="drop_oldest", op=Op.EVICT, position=1, end=2)
    full = with_hidden(edit, messages, apply([edit], messages))
    assert len(full.references) == MAX_REFERENCES
    assert full.references[0] == "own_name_of_mine"


def test_a_silent_use_marks_the_edit_once() -> None:
    watch = watching(evicted())
    [found] = watch.add_message(says(5, f"As {NAME} does."))
    assert (found.key, found.turn, found.name, found.how) == (0, 5, NAME, How.SILENT)
    assert watch.add_message(says(6, f"And {PATH}.")) == []


def test_a_name_shown_again_is_not_a_reference() -> None:
    watch = watching(evicted())
    assert watch.add_message(output(5, f"found {NAME} in ./{PATH}")) == []
    assert watch.add_message(says(6, f"{NAME} in {PATH}")) == []


def test_a_shown_path_reveals_its_folders_and_suffixes() -> None:
    watch = watching(evicted(("src/pool", "pool/evict.py", "evict.py")))
    watch.add_message(output(5, f"x {PATH}"))
    assert watch.add_message(says(6, "in src/pool, evict.py")) == []


def test_reading_the_file_again_is_distinguished() -> None:
    [found] = watching(evicted()).add_message(says(5, "", ("read_file", {"path": PATH})))
    assert found.how is How.READ_AGAIN
    watch = watching(evicted((NAME,)))
    watch.add_message(says(5, f"{NAME}?"))
    [later] = watch.add_message(says(6, "", ("read_file", {"path": PATH})))
    assert (later.key, later.turn, later.name, later.how) == (0, 5, NAME, How.READ_AGAIN)


def test_expanding_the_handle_is_distinguished() -> None:
    expand = ("expand_clip", {"handle": "h_1a2b"})
    [alone] = watching(collapsed()).add_message(says(5, "", expand))
    assert (alone.name, alone.how) == ("h_1a2b", How.EXPANDED)
    watch = watching(collapsed())
    [silent] = watch.add_message(says(5, f"{NAME}?"))
    [after] = watch.add_message(says(6, "", expand))
    assert silent.how is How.SILENT
    assert (after.turn, after.name, after.how) == (5, NAME, How.EXPANDED)


def test_searching_the_history_counts_as_expanding() -> None:
    [found] = watching(evicted()).add_message(says(5, "", ("search_history", {"query": NAME})))
    assert found.how is How.EXPANDED


def test_a_much_later_call_is_unrelated() -> None:
    watch = watching(collapsed())
    watch.add_message(says(5, NAME))
    assert watch.add_message(says(5 + LATER_TURNS + 1, "", ("read_file", {"path": PATH}))) == []


def test_the_table_stays_small() -> None:
    watch = ReferenceTracker()
    for key in range(200):
        names = tuple(f"some_name_{key}_{n}" for n in range(64))
        watch.add_edits([WatchedEdit(key=key, edit=evicted(names))])
    assert len(watch.names) == MAX_NAMES
    assert "some_name_199_63" in watch.names
    assert "some_name_0_0" not in watch.names


def test_the_state_survives_json() -> None:
    watch = watching(evicted(), collapsed())
    watch.add_message(says(5, NAME))
    assert ReferenceTracker.from_json(json.loads(json.dumps(watch.to_json()))) == watch
