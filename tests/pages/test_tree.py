"""Sub-agents and forks with the sums of everything below them."""

from __future__ import annotations

import pytest

from sessions.selectors.lists import tree as session_tree
from sessions.services.reconcile.branches import session_fork
from tests.markup import one_line
from tests.pages.served import address
from tests.pages.transcripts import make_session, reading_turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def family(project):
    """A session with two sub-agents, of which one has a sub-agent."""
    turns = [reading_turn(n) for n in range(3)]
    root = make_session(project, turns, name="root", title="The root")
    for name, parent in (("left", "root"), ("right", "root"), ("grandchild", "left")):
        make_session(project, turns, name=name, parent=parent, title=f"The {name}")
    for n, session in enumerate(project.agent_sessions.order_by("external_id"), start=1):
        session.cost_microusd, session.uncached_tokens = n * 1_000_000, n * 1_000
        session.save()
    return {session.external_id: session for session in project.agent_sessions.all()}, root


@pytest.mark.slow
def test_the_tree_sums_up_what_is_below_each_session(member_client, family):
    sessions, root = family
    tree = member_client.get(address("session", root)).context["tree"]
    found = [(node.session.external_id, node.depth, node.cost_microusd) for node in tree]
    assert found == [
        ("root", 0, 10_000_000),
        ("left", 1, 3_000_000),
        ("grandchild", 2, 1_000_000),
        ("right", 1, 3_000_000),
    ]
    assert tree[0].billed_tokens == sum(session.billed_tokens for session in sessions.values())


@pytest.mark.slow
def test_the_page_shows_the_cost_with_and_without_children(member_client, family):
    _, root = family
    page = one_line(member_client.get(address("session", root)))
    assert ">$4.00</data>" in page
    assert ">$10.00</data> with 3 sub-agents" in page
    assert "Not all are shown" not in page


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["MAX_SESSIONS", "MAX_DEPTH"])
def test_the_sums_include_sessions_that_are_not_shown(member_client, family, monkeypatch, limit):
    monkeypatch.setattr(session_tree, limit, 1)
    _, root = family
    page = one_line(member_client.get(address("session", root)))
    assert ">$10.00</data> with 3 sub-agents" in page
    assert "Not all are shown" in page


def test_a_row_of_the_list_opens(member_client, family):
    sessions, root = family
    response = member_client.get(f"/p/{root.project.slug}/sessions/")
    listed = response.text
    assert ">$6.00</data>, " in one_line(response)
    assert "by 3 sub-agents" in one_line(response)
    target = address("session_sub_agents", root)
    assert f'hx-get="{target}"' in listed
    opened = member_client.get(target, headers={"HX-Request": "true"}).text
    assert "<html" not in opened
    assert all(address("session", sessions[name]) in opened for name in ("left", "right", "grandchild"))


@pytest.mark.slow
def test_logs_that_name_each_other_as_parent_form_no_circle(member_client, project):
    for name, parent in (("a", "b"), ("b", "a"), ("a", "b"), ("c", "c"), ("c", "c")):
        session = make_session(project, name=name, parent=parent)
        tree = member_client.get(address("session", session)).context["tree"]
        assert [node.session.external_id for node in tree] in ([], ["a", "b"])
    assert [parent.external_id for parent in project.agent_sessions.exclude(children=None)] == ["a"]


@pytest.mark.slow
def test_the_number_of_queries_does_not_depend_on_the_tree(member_client, family, django_assert_num_queries):
    sessions, root = family
    with django_assert_num_queries(7):
        member_client.get(address("session_sub_agents", root))
    with django_assert_num_queries(7):
        member_client.get(address("session_sub_agents", sessions["left"]))


@pytest.mark.slow
def test_forks_name_where_they_differ(member_client, project):
    parent = make_session(project, [reading_turn(n) for n in range(4)])
    fork = session_fork(parent=parent, at=4, context_start=0)
    page = member_client.get(address("session", parent))
    assert "1 fork" in page.text
    assert "1 fork<" in member_client.get(f"/p/{project.slug}/sessions/").text
    assert "fork at message 4" in page.text
    assert (
        f"{address('session', parent)}?message=4#message-4"
        in member_client.get(address("session", fork)).text
    )
