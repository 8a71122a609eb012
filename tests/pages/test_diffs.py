"""Prompts compared as text: before and after a compaction, and at two turns. Memory at a turn."""

from __future__ import annotations

from itertools import pairwise

import pytest
from django.utils.html import strip_tags
from hypothesis import given
from hypothesis import strategies as st

from compaction.memory.origins import Author
from sessions.pages.rendering.diffs import diff_html
from sessions.selectors.past_prompts import outline
from sessions.selectors.past_prompts.changes import prompt_changes, prompts_around
from sessions.selectors.past_prompts.outline import outline_at
from sessions.services.compactions.revert import compaction_revert
from sessions.services.memory.revisions import Writer, memory_patch
from tests.pages.served import address, compacted_session
from tests.pages.transcripts import make_session, reading_turn


def shown_lines(html):
    """Yield the kind and the text of each line of a diff."""
    for piece in html.split('<div class="line ')[1:]:
        kind, _, block = piece.split("</div>")[0].partition('">')
        for line in block.split("\n"):
            yield kind, strip_tags(line)[1:]


def lines_of(html, kind):
    return [text for found, text in shown_lines(html) if found == kind]


def test_only_changed_lines_and_their_surroundings_are_displayed():
    old = "\n".join(f"line {n}" for n in range(50))
    html = diff_html(old, old.replace("line 20", "changed <20>"), is_unified=True)
    assert lines_of(html, "removed") == ["line 20"]
    assert lines_of(html, "added") == ["changed &lt;20&gt;"]
    assert lines_of(html, "same") == [f"line {n}" for n in (17, 18, 19, 21, 22, 23)]
    assert "17 unchanged lines" in html
    assert "26 unchanged lines" in html


def test_lines_that_a_long_output_keeps_are_unchanged():
    kept = [f"kept {n}" for n in range(20)]
    long = ["first", *kept[:10], *(f"line {n}" for n in range(3_000)), *kept[10:], "last"]
    html = diff_html("\n".join(long), "\n".join(["note", *kept, "end"]), is_unified=True)
    assert lines_of(html, "added") == ["note", "end"]
    assert not any(line.startswith("kept") for line in lines_of(html, "removed"))


def test_long_changes_are_folded_with_their_count():
    html = diff_html("\n".join(f"a{n}" for n in range(3_000)), "short", is_unified=True)
    assert "490 more lines" in html
    assert "2,500 more lines are not displayed" in html


def test_many_removed_lines_take_little_more_space_than_their_text():
    old = "\n".join(f"line {n} of a tool's output" for n in range(400))
    for is_unified in (True, False):
        assert len(diff_html(old, "", is_unified=is_unified)) < 2 * len(old)


lines = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=9)


@given(lines, lines)
def test_both_texts_can_be_rebuilt_from_a_short_diff(old, new):
    html = diff_html("\n".join(old), "\n".join(new), is_unified=True)
    if "unchanged" in html:
        return
    texts = list(shown_lines(html))
    assert [text for kind, text in texts if kind != "added"] == "\n".join(old).splitlines()
    assert [text for kind, text in texts if kind != "removed"] == "\n".join(new).splitlines()


@pytest.mark.django_db
class TestPages:
    @pytest.mark.slow
    def test_a_compaction(self, member_client, project, django_assert_max_num_queries):
        session = compacted_session(project)
        target = address("session_compaction_diff", session, 1)
        assert target in member_client.get(address("session_compaction", session, 1)).text
        with django_assert_max_num_queries(25):
            page = member_client.get(target)
        kinds = [kind for kind, *_ in page.context["counts"]]
        assert kinds[0] == "kept"
        assert "evicted" in kinds
        unified = member_client.get(target, {"view": "unified"}).text
        assert "a line of a file" in " ".join(lines_of(unified, "removed"))

    def test_its_tokens_are_those_of_the_record(self, project):
        session = compacted_session(project, budget=20_000)
        row = session.compactions.get()
        before, after = prompts_around(session=session, row=row)
        assert before.tokens - after.tokens == row.tokens_before - row.tokens_after
        changes = prompt_changes(before, after).page(0, 100)
        assert (
            sum(change.tokens_before - change.tokens_after for change in changes)
            == before.tokens - after.tokens
        )
        assert {change.kind for change in changes} == {"kept", "shortened"}

    @pytest.mark.slow
    def test_a_reverted_compaction_can_still_be_compared(self, member_client, project):
        session = compacted_session(project)
        before = member_client.get(address("session_compaction_diff", session, 1)).context["counts"]
        compaction_revert(session=session, number=1)
        assert member_client.get(address("session_compaction_diff", session, 1)).context["counts"] == before

    @pytest.mark.slow
    def test_two_turns(self, member_client, project):
        session = compacted_session(project)
        page = member_client.get(address("session_turn_diff", session, 11), {"turn": 12})
        assert "evicted" in [kind for kind, *_ in page.context["counts"]]
        same = member_client.get(address("session_turn_diff", session, 5), {"turn": 5})
        assert [kind for kind, *_ in same.context["counts"]] == ["kept"]

    @pytest.mark.slow
    def test_long_sessions_have_the_same_changes(self, member_client, project, monkeypatch):
        """Runs of messages that are not loaded count like loaded ones, and pages show their texts."""
        session = compacted_session(project, turns=16)
        pairs = [*pairwise(range(session.turn_count + 1)), (1, session.turn_count), (11, 16), (0, 9)]

        def figures():
            outlines = {n: outline_at(session=session, index=n) for n in range(session.turn_count + 1)}
            both = [(outlines[one], outlines[other]) for one, other in pairs]
            both += [(other, one) for one, other in both]  # as after a revert
            both.append(prompts_around(session=session, row=session.compactions.get()))
            changes = [prompt_changes(*each) for each in both]
            return [(each.counts(), _texts(session, each)) for each in changes]

        def _texts(session, changes):
            page = changes.page(0, 1_000)
            assert len(page) == len(changes)
            assert [changes.page(n, 1) for n in range(len(page))] == [[each] for each in page]
            entries = [(c.kind, e.first, e.last) for c in page for e in c.old_entries(1_000)]
            return sorted(entries), sorted((c.kind, c.first) for c in page if c.new is not None)

        short = figures()
        monkeypatch.setattr(outline, "LONG", 0)
        monkeypatch.setattr(outline, "_HEAD", 2)
        assert figures() == short
        for query in ({"turn": 12}, {"turn": 3}, {"turn": 12, "view": "table"}):
            page = member_client.get(address("session_turn_diff", session, 16), query)
            assert page.status_code == 200
            assert "a line of a file" in page.text or "view" in query

    @pytest.mark.slow
    def test_long_texts_are_compared_up_to_a_limit(self, member_client, project):
        turns = [reading_turn(0, "short"), reading_turn(1, "x" * 250_000)]
        session = make_session(project, turns)
        page = member_client.get(address("session_turn_diff", session, 0), {"turn": 2}).text
        assert "more characters are not compared" in page

    @pytest.mark.slow
    def test_changes_have_pages(self, member_client, project):
        session = compacted_session(project, turns=40, budget=50_000)
        target = address("session_turn_diff", session, 0)
        page = member_client.get(target, {"turn": 30})
        assert "from=25" in page.text
        query = {"turn": 30, "from": 25}
        rest = member_client.get(target, query, headers={"HX-Request": "true"})
        assert "<html" not in rest.text
        assert rest.context["shown_changes"]
        assert (
            outline_at(session=session, index=30).entries[-1].last
            >= rest.context["shown_changes"][-1].change.last
        )

    @pytest.mark.slow
    def test_memory_at_a_turn(self, member_client, project):
        session = compacted_session(project)
        for turn, task in ((2, "find the bug"), (6, "fix the bug")):
            revision = memory_patch(
                session=session, changes={"task": task}, writer=Writer(author=Author.PERSON)
            )
            session.memory_revisions.filter(number=revision.number).update(turn_index=turn)
        target = address("session_memory", session)
        assert "find the bug" in member_client.get(target, {"turn": 4}).text
        assert "empty at that time" in member_client.get(target, {"turn": 1}).text
        newest = member_client.get(target, {"turn": 10**6}).text
        assert "fix the bug" in newest
        assert "find the bug" not in newest
        compared = " ".join(member_client.get(target, {"turn": 8, "against": 3}).text.split())
        assert "Turn 3" in compared
        assert compared.index("find the bug") < compared.index("fix the bug")
