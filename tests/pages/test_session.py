import re

import pytest
from django.urls import reverse
from django.utils.html import strip_tags

from compaction.messages import Usage
from importers.base import ClientCompaction, ImportedMessage
from sessions.models import AgentSession
from sessions.selectors.transcripts.pages import SHOWN
from tests.markup import one_line
from tests.pages.transcripts import make_session, message, reading_turn, turn
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db


def page_of(client, session, **query):
    response = client.get(reverse("session", args=[session.project.slug, session.pk]), query)
    assert response.status_code == 200
    return response


def turns_on(response):
    return [shown.turn.index for shown in response.context["turns"]]


@reused
def long_session(project):
    return make_session(project, [reading_turn(index) for index in range(60)], name="long")


@pytest.mark.slow
def test_it_opens_at_the_newest_turns(member_client, long_session):
    response = page_of(member_client, long_session)
    assert turns_on(response) == list(range(60 - SHOWN, 60))
    assert f"?before={60 - SHOWN}" in response.text
    assert "?after=" not in response.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({"before": 40}, range(40 - SHOWN, 40)),
        ({"before": 5}, range(5)),
        ({"after": 50}, range(51, 60)),
        ({"turn": 30}, range(30 - SHOWN // 2, 30 + SHOWN // 2)),
        ({"turn": 0}, range(SHOWN // 2)),
        ({"turn": 59}, range(60 - SHOWN, 60)),
        ({"turn": 10**12}, range(60 - SHOWN, 60)),
        ({"turn": "x"}, range(60 - SHOWN, 60)),
        ({"before": -1}, range(60 - SHOWN, 60)),
    ],
)
def test_every_turn_has_a_url(member_client, long_session, query, shown):
    assert turns_on(page_of(member_client, long_session, **query)) == list(shown)


@pytest.mark.parametrize("query", [{"before": 0}, {"after": 59}, {"after": 10**15}])
def test_turns_beyond_the_ends_do_not_exist(member_client, long_session, query):
    assert turns_on(page_of(member_client, long_session, **query)) == []


def test_the_head_shows_where_a_session_ran(member_client, project):
    session = make_session(project)
    origin = {"cwd": "/home/ada/work/shop", "git_branch": "fix-pool", "repository": "git@host:shop.git"}
    session.metadata = origin
    session.save()
    page = page_of(member_client, session).text
    assert 'title="/home/ada/work/shop">…/work/shop<' in page
    assert all(origin[name] in page for name in ("git_branch", "repository"))


def test_a_fragment_continues_on_one_side_only(member_client, long_session):
    address = reverse("session", args=[long_session.project.slug, long_session.pk])
    older = member_client.get(address, {"before": 40}, headers={"HX-Request": "true"}).text
    assert "<html" not in older
    assert f"?before={40 - SHOWN}" in older
    assert "?after=" not in older


@pytest.mark.slow
def test_indexes_have_no_thousands_separator(member_client, project):
    session = make_session(project, [reading_turn(index) for index in range(1_030)], name="thousand")
    page = page_of(member_client, session).text
    assert 'id="turn-1029"' in page
    assert f"?before={1_030 - SHOWN}" in page
    assert 'value="1020"' in page_of(member_client, session, turn=1020).text


def test_a_turn_shows_size_growth_usage_and_cost(member_client, project):
    page = page_of(member_client, make_session(project)).text
    assert 'title="3,005 tokens"' in page
    assert 'title="+1,000 tokens"' in page
    assert "cache read" in page
    assert "estimate" in page


def test_tool_calls_and_results_are_readable(member_client, project):
    page = page_of(member_client, make_session(project, [reading_turn(0), reading_turn(1, "the text")])).text
    assert "<dt>file_path</dt>" in page
    assert "Read output" in page
    assert "the text" in strip_tags(page)


def test_a_result_is_named_by_a_call_on_the_page_before(member_client, long_session):
    response = page_of(member_client, long_session, before=40)
    assert response.context["turns"][0].messages[0].blocks[0].label == "Read"


def test_turns_show_marks(member_client, project):
    failed = {"type": "tool_result", "tool_use_id": "call-0", "content": "boom", "is_error": True}
    turns = [
        reading_turn(0),
        turn(1, [message("user", [failed], "u1"), message("assistant", "Sorry.", "a1")], minutes=10),
        turn(
            2,
            [
                message("user", "What happened so far.", "u2", is_summary=True),
                message("user", "a reminder", "u2b", is_meta=True),
                message("assistant", [{"type": "thinking", "thinking": "Hm.", "signature": "s"}], "a2"),
                message("assistant", [{"type": "redacted_thinking", "data": "s"}], "a3"),
            ],
            compaction=ClientCompaction(trigger="auto", tokens_before=155_000),
        ),
    ]
    page = page_of(member_client, make_session(project, turns)).text
    for text in (
        "error-mark",
        "client summary",
        "Inserted by the client",
        "The client compacted its context",
    ):
        assert text in page
    assert "(auto)" in page
    assert 'title="155,000 tokens"' in page
    assert "idle for 10 min" in page
    assert "<summary>thinking" in page
    assert '<p class="thinking">thinking (redacted by the provider)</p>' in page
    assert "no usage" in page


def test_an_image_is_a_placeholder(member_client, project):
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA" * 50}}
    page = page_of(member_client, make_session(project, [turn(0, [message("user", [image], "u0")])])).text
    assert "AAAAAAAA" not in page
    assert "image" in page
    assert "1,590 tokens" in page


def test_transcripts_are_text(member_client, project):
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    edit = {evil: evil, "old_string": evil, "new_string": ""}
    call = {"type": "tool_use", "id": "c", "name": evil, "input": edit}
    turns = [turn(0, [message("user", evil, "u0"), message("assistant", [call], "a0")])]
    page = page_of(member_client, make_session(project, turns, title=evil, agent=evil, model=evil)).text
    assert "<script>alert" not in page
    assert "<img" not in page


def test_lone_surrogates_are_displayed(member_client, project):
    turns = [turn(0, [message("user", "\ud83d\x00\x1b[0m‮", "u0")])]
    page = page_of(member_client, make_session(project, turns)).text
    assert "\ufffd␀␛[0m⟨U+202E⟩" in page


@pytest.mark.slow
def test_a_long_output_is_fetched_when_opened(member_client, project):
    session = make_session(project, [reading_turn(0), reading_turn(1, "begin " + "x" * 500_000 + " end")])
    page = page_of(member_client, session)
    assert len(page.content) < 60_000
    address = reverse("session_text", args=[session.project.slug, session.pk, 2, 0])
    assert address in page.text
    whole = member_client.get(address, headers={"HX-Request": "true"}).text
    assert "begin x" in whole
    assert "?offset=200000" in whole
    assert "x end" in member_client.get(address, {"offset": 400_000}).text


@pytest.mark.slow
def test_a_long_argument_is_fetched_when_opened(member_client, project):
    content = "\n".join(f"line {number}" for number in range(2_000))
    call = {"type": "tool_use", "id": "c", "name": "Write", "input": {"file_path": "a", "content": content}}
    messages = [message("user", "Go.", "u0"), message("assistant", [call], "a0")]
    session = make_session(project, [turn(0, messages)])
    assert "line 1999" not in page_of(member_client, session).text
    address = reverse("session_text", args=[session.project.slug, session.pk, 1, 0])
    assert "line 1999" in member_client.get(address, {"argument": "content"}).text
    assert member_client.get(address, {"argument": "no_such"}).status_code == 404
    assert member_client.get(address).status_code == 404


@pytest.mark.parametrize(("position", "part"), [(0, 9), (99, 0), (2**40, 0), (0, 2**70)])
def test_unknown_parts_have_no_text(member_client, project, position, part):
    session = make_session(project)
    address = reverse("session_text", args=[session.project.slug, session.pk, position, part])
    assert member_client.get(address).status_code == 404


def test_the_chart_has_every_turn(member_client, project):
    session = make_session(project)
    answer = member_client.get(reverse("session_chart", args=[project.slug, session.pk])).json()
    assert answer["turns"] == [0, 1, 2]
    assert answer["reported"] == [1_005, 2_005, 3_005]
    assert len(answer["estimate"]) == 3
    assert answer["window"] == session.context_window
    assert answer["is_sampled"] is False


def test_the_chart_is_also_a_table(member_client, project):
    session = make_session(project)
    page = member_client.get(reverse("session_chart_table", args=[project.slug, session.pk])).text
    assert "3,005" in page
    assert "Tokens of every turn." in page


@pytest.mark.slow
def test_charts_of_one_turn_and_none(member_client, project):
    assert turns_on(page_of(member_client, make_session(project, [reading_turn(0)]))) == [0]
    empty = project.agent_sessions.create(external_id="empty", format="openai")
    assert "no turns yet" in page_of(member_client, empty).text


@pytest.mark.slow
def test_sub_agents_and_parents_are_linked(member_client, project):
    parent = make_session(project, name="parent", title="The parent")
    child = make_session(project, name="child", parent="parent", title="The child")
    assert reverse("session", args=[project.slug, child.pk]) in page_of(member_client, parent).text
    assert reverse("session", args=[project.slug, parent.pk]) in page_of(member_client, child).text


def test_models_without_a_price_are_labeled(member_client, project):
    usage = Usage(uncached_tokens=10, output_tokens=1)
    messages = [message("user", "Hi.", "u0"), message("assistant", "Hello.", "a0")]
    turns = [turn(0, messages, usage=usage, model="house-model-1")]
    session = make_session(project, turns, model="house-model-1")
    page = page_of(member_client, session).text
    assert 'title="1 turn used a model without a known price.">unpriced<' in page
    call = one_line(member_client.get(reverse("session_turn", args=[project.slug, session.pk, 0])))
    assert "This model has no known price" in call
    assert "List prices" not in call
    assert "Unknown context window" in page


def test_openai_format(member_client, project):
    function = {"name": "run", "arguments": '{"cmd": "ls -la"}'}
    call = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    answer = {"role": "tool", "tool_call_id": "c1", "content": "total 0"}
    messages = [{"role": "user", "content": "List it."}, call, answer]
    bodies = [ImportedMessage(body=body, source_id=f"m{n}") for n, body in enumerate(messages)]
    page = page_of(member_client, make_session(project, [turn(0, bodies)], format="openai")).text
    assert "<code>ls -la</code>" in page
    assert "run output" in page
    assert "total 0" in page


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow(member_client, project, django_assert_num_queries):
    short = make_session(project, name="short")
    long = make_session(project, [reading_turn(index) for index in range(100)], name="long")
    for session in (short, long):
        with django_assert_num_queries(15):
            page_of(member_client, session)
        with django_assert_num_queries(6):
            member_client.get(reverse("session_chart", args=[project.slug, session.pk]))


def test_a_session_without_turns_explains_how_to_push_them(member_client, project):
    empty = AgentSession.objects.create(project=project, external_id="just-made")
    page = page_of(member_client, empty).text
    assert "/api/v1/sessions/just-made/turns/" in page
    assert reverse("docs") in page
    assert "<span>Health</span>" not in page


@pytest.mark.slow
def test_it_shows_how_the_provider_counts(member_client, long_session):
    long_session.calibration = {
        "initial": 1.26,
        "overhead": 18_200,
        "reports": 7,
        "growth": [0, 0],
        "last": [1_000, 19_460],
        "doubt": None,
    }
    long_session.save()
    shown = " ".join(page_of(member_client, long_session).text.split())
    assert "Provider: 1.26 × estimate + <data" in shown
    assert ">18.2k</data>" in shown
    assert "usage of 7 turns." in shown
    long_session.calibration |= {"initial": 1.003, "overhead": 0, "last": None}
    long_session.save()
    prompt = member_client.get(reverse("session_prompt", args=[long_session.project.slug, long_session.pk]))
    assert "What the next call will send" in prompt.text
    assert "1.00" not in page_of(member_client, long_session).text + prompt.text
    long_session.calibration = {}
    long_session.save()
    assert "Provider: " not in page_of(member_client, long_session).text


@pytest.mark.parametrize(
    ("limit", "peak", "level"),
    [
        ({"budget_tokens": 100_000}, 99_000, "within"),
        ({"budget_tokens": 100_000}, 101_000, "over"),
        ({"context_window": 100_000}, 89_000, "within"),
        ({"context_window": 100_000}, 91_000, "near"),
    ],
)
def test_a_prompt_held_below_its_budget_is_no_warning(member_client, project, limit, peak, level):
    session = make_session(project)
    AgentSession.objects.filter(pk=session.pk).update(
        peak_prompt_tokens=peak, last_prompt_tokens=9_000, **limit
    )
    page = member_client.get(reverse("session", args=[project.slug, session.pk])).text
    assert re.findall(r'class="bar bar-(\w+)"', page) == ["within", level]
