"""Parse recaps that users wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.adapters.tiktoken_counter import TiktokenCounter
from compaction.messages import Message, Role, Text
from compaction.recap import Item, Mention, Recap, Status, extract
from compaction.recap.parse import recap_parse
from tests.compaction.recaps import Transcript, recap_of

BEFORE = Recap(first_turn=2, last_turn=9, reserve=(Mention(name="kept_name", last=3),))
TEXT = """[Recap of turns 2 to 9, no longer shown. A record.]
## Decisions
- we ship by freight
## Entities
- src/rates.py: read t3, edited t5
- Bergstrom Ltd
## Facts
- the limit is 30 kg
## Open items
- [open] the tariff of 2027
- [DONE] the invoice
a loose line

[Working memory]
Task: none of the writer's business"""


def read(text: str) -> Recap:
    return recap_parse(text, previous=BEFORE, position=40)


def texts(items: tuple[Item, ...]) -> list[str]:
    return [item.text for item in items]


def test_each_line_is_an_item_of_its_section() -> None:
    recap = read(TEXT)
    assert texts(recap.decisions) == ["we ship by freight"]
    assert texts(recap.entities) == ["src/rates.py", "Bergstrom Ltd"]
    assert texts(recap.facts) == ["the limit is 30 kg"]
    assert [(item.text, item.status) for item in recap.open_items] == [
        ("the tariff of 2027", Status.OPEN),
        ("the invoice", Status.DONE),
        ("a loose line", None),
    ]


def test_an_edited_recap_keeps_the_turns_and_the_reserve() -> None:
    recap = read(TEXT)
    assert (recap.first_turn, recap.last_turn) == (2, 9)
    assert {"kept_name", "src/rates.py"} <= {mention.name for mention in recap.reserve}


def test_lines_without_a_section_are_facts() -> None:
    assert texts(read("one\n\n* two\n# A title of one's own").facts) == [
        "one",
        "two",
        "# A title of one's own",
    ]


def test_a_rendered_recap_parses_to_an_equal_one() -> None:
    recap = read(TEXT)
    assert read(recap.render()) == recap


def test_an_edited_recap_keeps_handles_names_and_commands() -> None:
    pool = Item(
        text="src/pool.py",
        notes=("read t3",),
        mentions=(Mention("evict_idle", 5, 5, 2), Mention("seen_name", 4)),
        handles=("h_abcdefghi1", "h_abcdefghi2"),
        sources=(5,),
    )
    failed = Item(text="`pytest -q`", notes=('failed t4 "no: it is closed"',), status=Status.OPEN)
    before = Recap(first_turn=0, last_turn=9, entities=(pool,), facts=(failed,), handles_left_out=3)
    text = before.render().replace(" h_abcdefghi2", " h_madeupone1").replace("read t3", "the pool")
    edited = recap_parse(text, previous=before, position=40)
    assert [(item.text, item.notes, item.handles) for item in edited.entities] == [
        ("src/pool.py", ("the pool",), ("h_abcdefghi1",))
    ]
    assert edited.entities[0].mentions == pool.mentions
    assert [(item.text, item.notes) for item in edited.facts] == [(failed.text, failed.notes)]
    assert (edited.open_items, edited.handles_left_out) == ((), 3)


@given(st.text(max_size=200))
def test_any_text_can_be_parsed_and_rendered(text: str) -> None:
    recap = read(text)
    assert Recap.from_json(recap.to_json()) == recap
    again = read(recap.render())
    assert [len(items) for items in again.sections().values()] == [
        len(items) for items in recap.sections().values()
    ]


def test_an_answer_does_not_close_an_item_that_a_user_wrote() -> None:
    talk = Transcript().user("And the mail?").says("It is sent.")
    items = {item.text: item.status for item in recap_of(talk, previous=read(TEXT)).open_items}
    assert items["the tariff of 2027"] is Status.OPEN
    assert items["user t0: And the mail?"] is Status.DONE


@pytest.mark.slow
def test_the_next_recap_includes_every_line() -> None:
    later = Message(position=41, role=Role.USER, parts=(Text(text="Go on."),), tokens=3)
    text = extract((later,), counter=TiktokenCounter(), cap_tokens=2_000, previous=read(TEXT)).render()
    for words in ("we ship by freight", "src/rates.py: read t3, edited t5", "30 kg", "2027", "a loose line"):
        assert words in text
