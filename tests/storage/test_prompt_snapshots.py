"""Prompt snapshots restore the exact bytes of the original prompt."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction.view import VERBATIM
from sessions.store.bodies import Placeholder, json_bytes
from sessions.store.prompt_bytes import PromptMessages, manifest_entry
from sessions.store.prompt_snapshots import PromptOutline

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
RULES = st.sampled_from([VERBATIM, "recap", "clip", "memory"])


@given(shown=st.lists(st.tuples(RULES, TEXTS, st.booleans()), max_size=20), recap=st.none() | TEXTS)
def test_a_snapshot_and_its_messages_are_the_prompt(
    shown: list[tuple[str, str, bool]], recap: str | None
) -> None:
    pieces, manifest, rows, position = [], [], {}, 0
    for rule, text, is_after_gap in shown:
        position += 1 + is_after_gap
        data = json_bytes({"role": "user", "content": f"{recap}{text}" if rule == "recap" else text})
        pieces.append(data)
        if rule == VERBATIM:
            rows[position] = ("user", len(text), data)
        manifest.append(manifest_entry(position, position, "user", rule, len(text), len(text)))
    prompt = PromptMessages(pieces=pieces, manifest=manifest)
    outline = PromptOutline.unpack(PromptOutline.of(prompt).pack(recap), recap)
    assert outline.fill(rows) == prompt
    assert {p for first, end in outline.spans for p in range(first, end)} == rows.keys()


def test_a_prompt_is_incomplete_if_the_content_of_any_message_is_lost() -> None:
    outline = PromptOutline().append((0, 3))
    lost, data = Placeholder(b'{"role":"user","content":"[lost]"}'), b'{"role":"user","content":"Hi."}'
    for contents in ([lost, data, data], [data, data, lost]):
        rows = {position: ("user", 5, content) for position, content in enumerate(contents)}
        assert not outline.fill(rows).is_complete
    shown = outline.fill({0: ("user", 5, data), 1: None, 2: ("user", 5, data)})
    assert (shown.is_complete, len(shown.pieces)) == (True, 2)
