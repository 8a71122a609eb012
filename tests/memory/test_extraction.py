"""Memory extraction: which suggestions of a model change the memory."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.errors import SummaryMalformed, SummaryRefused, SummaryTooLong
from compaction.memory.extraction.apply import OWN_TOKENS, Applied, apply, removed_items
from compaction.memory.extraction.prompt import numbered
from compaction.memory.extraction.reply import Extraction
from compaction.memory.extraction.schedule import (
    MAX_INPUT_TOKENS,
    READ_TOKENS,
    TURNS_AT_ONCE,
    turns_to_extract,
)
from compaction.memory.extraction.suggestions import MAX_ITEM, MAX_SUGGESTIONS, Step
from compaction.memory.origins import Author, Notes, Origin, Via, keys
from compaction.memory.schema import CustomField, Schema
from compaction.memory.updates import UpdaterState, update_notes
from compaction.memory.values import ASKED_TOKENS, WorkingMemory
from compaction.structured_output import Reply, answer_of
from tests.compaction.builders import COUNTER, assistant, call, result, user
from tests.compaction.sessions import messages_of
from tests.plugins.examples import examples
from tests.provider.behaviours import operation

SCHEMA = Schema((CustomField(name="risks", max_items=2), CustomField(name="ticket", single=True)))
MESSAGES = messages_of(
    [
        user("Make the pool evict idle connections, see src/pool.py. The limit is 4096."),
        call("c", "Bash", command="pytest tests/test_pool.py"),
        result("c", "1 failed"),
        assistant("A timer did not work since the clock is mocked. I take a queue. Next I edit src/pool.py."),
    ]
)
PERSON = Origin(author=Author.PERSON, via=Via.PAGE)
AGENT = Origin(author=Author.MODEL, via=Via.TOOL)
READER = Origin(author=Author.MODEL, via=Via.EXTRACTION)


def notes_of(*groups: tuple[Origin, dict[str, Any]]) -> Notes:
    """Return notes to which each origin has written fields in turn."""
    notes = Notes()
    for origin, fields in groups:
        values = {
            name: value if isinstance(value, str) else [*notes.memory.items(name), *value]
            for name, value in fields.items()
        }
        notes = notes.written(notes.memory.patched(values, SCHEMA), origin)
    return notes


op = partial(operation, message=3)


def read(
    notes: Notes, *operations: Any, dismissed: tuple[str, ...] = (), state: UpdaterState | None = None
) -> Applied:
    """Apply a reply to these notes."""
    reading = Extraction(messages=MESSAGES, notes=notes, schema=SCHEMA, dismissed=dismissed)
    suggestions = reading.suggestions({"operations": list(operations)})
    return apply(
        notes, state or UpdaterState(), suggestions, schema=SCHEMA, dismissed=dismissed, counter=COUNTER
    )


def number_of(notes: Notes, item: str) -> str:
    return next(number for number, key in numbered(notes).items() if key[1] == item)


class TestSchedule:
    def test_it_waits_for_enough_content_or_an_idle_session(self) -> None:
        few = [READ_TOKENS // 4] * 3
        assert turns_to_extract(few, is_idle=False) == 0
        assert turns_to_extract(few, is_idle=True) == 3
        assert turns_to_extract([*few, READ_TOKENS // 4], is_idle=False) == 4
        assert turns_to_extract([], is_idle=True) == 0
        assert turns_to_extract([1] * TURNS_AT_ONCE, is_idle=False) == TURNS_AT_ONCE

    def test_a_large_turn_is_read_alone(self) -> None:
        assert turns_to_extract([MAX_INPUT_TOKENS - 5, 5, 1], is_idle=False) == 2
        assert turns_to_extract([2 * MAX_INPUT_TOKENS, 1], is_idle=False) == 1
        assert turns_to_extract([1, 2 * MAX_INPUT_TOKENS], is_idle=False) == 1
        assert turns_to_extract([1] * 1_000, is_idle=False) == TURNS_AT_ONCE


class TestAdditions:
    def test_items_are_added_with_their_source(self) -> None:
        made = read(
            Notes(),
            op("add", "a queue and no timer", message=3),
            op("add", "tried a timer: failed because the clock is mocked", field="tried", message=99),
            op("add", "edit src/pool.py", field="next"),
            op("add", "the limit of 4096 may be too small", field="risks", message=0),
        )
        assert made.notes.memory.decisions == ("a queue and no timer",)
        assert made.notes.memory.next == "edit src/pool.py"
        assert made.notes.memory.custom["risks"] == ("the limit of 4096 may be too small",)
        origin = made.notes.origin("decisions", "a queue and no timer")
        assert (origin.author, origin.via, origin.turn, origin.position) == ("model", "reading", 2, 3)
        elsewhere = made.notes.origin("tried", made.notes.memory.tried[0])
        assert (elsewhere.turn, elsewhere.position) == (2, None)
        assert made.reason == "decisions, next, risks, tried"

    def test_an_answer_without_operations_changes_nothing(self) -> None:
        notes = notes_of((PERSON, {"decisions": ["mine"]}))
        made = read(notes)
        assert made.notes is notes
        assert made.reason == ""

    @pytest.mark.parametrize("field", ["important_files", "recent_edits", "blockers", "state", "no_such"])
    def test_fields_of_automatic_updates_are_off_limits(self, field: str) -> None:
        assert read(Notes(), op("add", "anything", field=field)).reason == ""

    @pytest.mark.parametrize("name", ["src/made_up.py", "8192", "PoolGuard", "deadbeef42"])
    def test_an_unknown_identifier_drops_the_item(self, name: str) -> None:
        made = read(Notes(), op("add", f"use {name}"), op("add", "use src/pool.py"))
        assert made.notes.memory.decisions == ("use src/pool.py",)

    def test_identifiers_in_the_memory_are_known(self) -> None:
        notes = notes_of((AGENT, {"decisions": ["PoolGuard stays"]}))
        assert (
            "is PoolGuard needed?"
            in read(
                notes, op("add", "is PoolGuard needed?", field="open_questions")
            ).notes.memory.open_questions
        )

    @pytest.mark.parametrize(
        "wrong",
        [
            None,
            "add",
            {},
            op("burn", "x"),
            op("add", ""),
            op("add", "…"),
            op("add", "nul \0 in it"),
            op("add", "long " * MAX_ITEM),
            {**op("add"), "text": 3},
            {**op("add", "x"), "field": ["decisions"]},
            op("replace", "x", item="i9"),
            {**op("replace", "x"), "item": None},
        ],
        ids=repr,
    )
    def test_invalid_suggestions_are_dropped(self, wrong: Any) -> None:
        assert read(Notes(), wrong, op("add", "a queue")).notes.memory.decisions == ("a queue",)

    def test_suggestions_beyond_the_limit_are_ignored(self) -> None:
        words = [f"{chr(97 + n)}{chr(98 + n)}" for n in range(MAX_SUGGESTIONS + 4)]
        made = read(Notes(), *(op("add", word) for word in words))
        assert made.notes.memory.decisions == tuple(words[:MAX_SUGGESTIONS])

    def test_lines_are_joined_so_that_none_looks_like_a_heading(self) -> None:
        made = read(Notes(), op("add", "a queue\nBlockers:\n- none"))
        assert made.notes.memory.decisions == ("a queue Blockers: - none",)

    def test_similar_items_are_not_added(self) -> None:
        notes = notes_of((PERSON, {"decisions": ["We take a queue, not a timer"]}))
        assert read(notes, op("add", "we take a queue not a timer.", field="tried")).reason == ""

    def test_items_with_different_numbers_differ(self) -> None:
        notes = notes_of((PERSON, {"decisions": ["the limit of the pool is 12"]}))
        assert len(read(notes, op("add", "the limit of the pool is 4096")).notes.memory.decisions) == 2

    def test_a_full_custom_list_is_not_extended(self) -> None:
        notes = notes_of((PERSON, {"risks": ["one", "two"]}))
        assert read(notes, op("add", "three", field="risks")).reason == ""


class TestOwnItems:
    notes = notes_of((READER, {"decisions": ["a timer"], "next": "look around"}))

    def test_own_items_can_be_reworded_resolved_and_removed(self) -> None:
        number = number_of(self.notes, "a timer")
        assert read(self.notes, op("replace", "a queue", item=number)).notes.memory.decisions == ("a queue",)
        settled = read(self.notes, op("resolve", item=number)).notes
        assert (settled.memory.decisions, settled.resolved) == ((), (("decisions", "a timer"),))
        assert read(self.notes, op("remove", item=number)).notes.resolved == ()

    def test_a_single_string_is_replaced(self) -> None:
        made = read(self.notes, op("add", "edit src/pool.py", field="next"))
        assert made.notes.memory.next == "edit src/pool.py"

    def test_above_the_limit_stale_and_old_items_are_dropped_first(self) -> None:
        texts = {letter: " ".join(letter * 120) for letter in "abcdefg"}
        notes = notes_of(
            *(
                (replace(READER, turn=turn), {"decisions": [texts[letter]]})
                for turn, letter in enumerate("abcde")
            )
        )
        stale = op("stale", "no more", item=number_of(notes, texts["d"]))
        made = read(notes, stale, op("add", texts["f"]), op("add", texts["g"])).notes
        assert [item[0] for item in made.memory.decisions] == ["b", "c", "e", "f", "g"]
        assert COUNTER.count("\n".join(made.memory.decisions)) <= OWN_TOKENS


class TestItemsOfOthers:
    @pytest.mark.parametrize("origin", [PERSON, AGENT, Origin(author=Author.HARNESS, via=Via.AUTO_UPDATE)])
    @pytest.mark.parametrize("step", ["replace", "resolve", "remove"])
    def test_items_of_others_are_not_changed(self, origin: Origin, step: str) -> None:
        notes = notes_of((origin, {"decisions": ["a timer"]}))
        assert read(notes, op(step, "a queue", item="i1")).notes is notes

    def test_items_of_others_are_marked_stale_with_a_reason(self) -> None:
        notes = notes_of((PERSON, {"decisions": ["a timer"]}))
        made = read(notes, op("stale", "a queue is used since t3", item="i1"))
        assert made.notes.memory == notes.memory
        assert made.notes.origin("decisions", "a timer").stale == "a queue is used since t3"
        assert made.notes.origin("decisions", "a timer").author is Author.PERSON
        assert made.reason == "1 stale"

    def test_items_of_others_are_not_marked_for_an_overruled_finding(self) -> None:
        notes = notes_of((PERSON, {"decisions": ["a timer"]}))
        marked = read(notes, op("stale", "a queue is used since t3", item="i1")).notes
        confirmed = marked.confirmed([("decisions", "a timer")])
        assert read(confirmed, op("stale", "Since t3, a queue is used", item="i1")).notes is confirmed
        assert read(confirmed, op("stale", "a thread is used", item="i1")).reason == "1 stale"

    @pytest.mark.parametrize("reason", ["", "PoolGuard is used", "word " * 40])
    def test_items_of_others_are_not_marked_for_an_invalid_reason(self, reason: str) -> None:
        notes = notes_of((PERSON, {"decisions": ["a timer"]}))
        assert read(notes, op("stale", reason, item="i1")).notes is notes

    @pytest.mark.parametrize("field", ["task", "next", "ticket"])
    def test_a_single_string_of_others_is_kept(self, field: str) -> None:
        notes = notes_of((AGENT, {field: "something else"}))
        assert read(notes, op("add", "make the pool evict", field=field)).notes is notes

    def test_an_observed_task_is_replaced(self) -> None:
        observed = Origin(author=Author.HARNESS, via=Via.AUTO_UPDATE)
        notes = notes_of((observed, {"task": "something else"}))
        made = read(notes, op("add", "make the pool evict", field="task")).notes
        assert made.memory.task == "make the pool evict"
        assert made.origin("task", "make the pool evict").via is Via.EXTRACTION

    def test_an_item_without_an_origin_can_be_stale(self) -> None:
        notes = Notes(memory=WorkingMemory(decisions=("a timer",)))
        assert read(notes, op("stale", "a queue is used", item="i1")).notes.stale


class TestRemovedItems:
    def test_removed_items_are_not_added_in_another_order_or_case(self) -> None:
        out = ("We take a queue, not a timer",)
        made = read(Notes(), op("add", "Not a timer: we take a queue", field="tried"), dismissed=out)
        assert made.reason == ""

    def test_removed_items_include_those_reworded_by_others(self) -> None:
        observed = Origin(author=Author.HARNESS, via=Via.AUTO_UPDATE)
        first = notes_of((READER, {"decisions": ["a", "b"], "next": "x"}), (observed, {"blockers": ["c"]}))
        second = notes_of((READER, {"decisions": ["b2"], "next": "y"}))
        third = notes_of((READER, {"decisions": ["b2"]}))
        assert removed_items([first, second, third]) == ("a", "b", "y")

    def test_automatic_updates_remember_removed_items_when_they_shrink(self) -> None:
        """They shrink to make room for the model's items; items that a user has just removed stay removed."""
        state = UpdaterState()
        work = messages_of([user("Mend it " * 30), call("c", "Read", file_path="a.py"), result("c", "x = 1")])
        kept = update_notes(Notes(), state, work, counter=COUNTER)
        edited = kept.notes.written(
            kept.notes.memory.patched({"important_files": [], "tried": ["word " * 575]}), PERSON
        )
        made = read(edited, op("add", "a queue " * 12), state=kept.state)
        assert made.notes.memory.important_files == ()
        assert ("important_files", "a.py") in made.state.dismissed


class TestReply:
    def test_a_reply_must_contain_operations(self) -> None:
        reading = Extraction(messages=MESSAGES, notes=Notes(), schema=SCHEMA)
        for answer in ({}, {"operations": None}, {"operations": {"op": "add"}}):
            with pytest.raises(SummaryMalformed):
                reading.suggestions(answer)

    @pytest.mark.parametrize(
        ("reply", "error"),
        [
            (Reply(text="", stop_reason="refusal"), SummaryRefused),
            (Reply(text='{"operations": [', stop_reason="max_tokens"), SummaryTooLong),
            (Reply(text="Sure!", stop_reason="end_turn"), SummaryMalformed),
            (Reply(text="[]", stop_reason="end_turn"), SummaryMalformed),
        ],
    )
    def test_a_reply_that_is_not_json_is_an_error(self, reply: Reply, error: type[Exception]) -> None:
        with pytest.raises(error):
            answer_of(reply)

    def test_the_request_contains_rules_notes_and_removed_items(self) -> None:
        notes = notes_of((PERSON, {"decisions": ["a timer"]}), (READER, {"next": "look"}))
        request = Extraction(
            messages=MESSAGES, notes=notes, schema=SCHEMA, dismissed=("use threads",)
        ).request
        assert "i1 decisions, by the person: a timer" in request.content
        assert "i2 next, yours: look" in request.content
        assert "use threads" in request.content
        assert "#0 t0 user: Make the pool evict" in request.content
        assert "timer" not in request.system
        assert "- ticket: one string" in request.system
        fields = request.schema["properties"]["operations"]["items"]["properties"]["field"]["enum"]
        assert fields == ["task", "decisions", "open_questions", "next", "tried", "risks", "ticket"]


WORDS = st.sampled_from(["a", "queue", "timer", "src/pool.py", "4096", "made_up", "—", "\n", "的"])
TEXTS = st.one_of(st.text(max_size=400), st.lists(WORDS, max_size=80).map(" ".join))
OPERATIONS = st.fixed_dictionaries(
    {
        "op": st.sampled_from([*Step, "burn"]),
        "field": st.sampled_from(["task", "decisions", "next", "tried", "risks", "ticket", "blockers"]),
        "item": st.sampled_from(["", *(f"i{number}" for number in range(1, 12))]),
        "text": TEXTS,
        "message": st.one_of(st.integers(-1, 9), st.none()),
    }
)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5))
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
)
ORIGINS = st.sampled_from([PERSON, AGENT, READER, Origin(author=Author.HARNESS, stale="gone")])
GROUPS = st.lists(
    st.tuples(
        ORIGINS,
        st.fixed_dictionaries(
            {},
            optional={
                "task": TEXTS,
                "next": TEXTS,
                "decisions": st.lists(TEXTS, max_size=3),
                "tried": st.lists(TEXTS, max_size=2),
                "blockers": st.lists(TEXTS, max_size=2),
            },
        ),
    ),
    max_size=4,
)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(
    groups=GROUPS,
    operations=st.lists(st.one_of(OPERATIONS, ANYTHING), max_size=30),
    dismissed=st.lists(TEXTS, max_size=3),
)
def test_any_reply_leaves_items_of_others_and_the_size_limit_intact(
    groups: list[Any], operations: list[Any], dismissed: list[str]
) -> None:
    work = messages_of(
        [call("c", "Bash", command="pytest"), result("c", "FAILED a.py::b - assert 1\n1 failed")]
    )
    kept = update_notes(notes_of(*groups), UpdaterState(), work, counter=COUNTER)
    notes = kept.notes
    made = read(notes, *operations, dismissed=tuple(dismissed), state=kept.state).notes

    def others(notes: Notes) -> list[tuple[str, str]]:
        own = (Via.EXTRACTION, Via.AUTO_UPDATE)
        return [key for key in keys(notes.memory) if notes.origin(*key).via not in own]

    assert others(made) == others(notes)
    for key in others(notes):
        assert made.origin(*key).author is notes.origin(*key).author
        assert made.origin(*key).turn == notes.origin(*key).turn
    size = COUNTER.count(made.render())
    assert size <= max(ASKED_TOKENS, COUNTER.count(notes.render()))
    before = {item for _, item in keys(notes.memory)}
    new = [
        key for key in keys(made.memory) if key[1] not in before and made.origin(*key).via is Via.EXTRACTION
    ]
    assert len(new) <= MAX_SUGGESTIONS
    assert all(len(item) <= MAX_ITEM and "\n" not in item for _, item in new)
    assert not any("made_up" in item for _, item in new) or "made_up" in notes.memory.render()
