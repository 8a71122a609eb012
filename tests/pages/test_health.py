"""Sparklines and health grades: calculation, storage and display."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.utils import timezone

from compaction.messages import Usage
from importers.base import ClientCompaction
from sessions.models import AgentSession, SessionProfile, Turn
from sessions.selectors.health.grades import GRADES, RULES, Signs, health_of
from sessions.services.sessions.profiles import profile_write, profiles_refresh, sparkline
from sessions.services.tools.counting import session_tools_count
from tests.pages.served import address, compacted_session
from tests.pages.transcripts import make_session, reading_turn
from tests.trends.turns import session_make, turn_make


def test_a_session_without_issues_has_full_score():
    health = health_of(Signs(turns=100, calls=100))
    assert (health.score, health.grade, health.reasons) == (100, "A", [])


@pytest.mark.parametrize(
    ("signs", "code", "points"),
    [
        ({"pressed": 50}, "pressure", 20),
        ({"pressed": 1}, "pressure", 1),
        ({"burst": 2}, "burst", 10),
        ({"repeated": 2}, "repeated", 16),
        ({"mid_task": 1}, "mid_task", 4),
        ({"spikes": 99}, "spikes", 24),
        ({"lost": 1}, "lost", 6),
        ({"failures": 1}, "failures", 10),
        ({"missed": 30}, "cache", 30),
        ({"missed": 90}, "cache", 40),
        ({"client": 2}, "client", 16),
        ({"outputs": 20, "errors": 10}, "errors", 20),
        ({"outputs": 5, "errors": 5}, "errors", 40),
        ({"churning": True}, "churn", 10),
        ({"runaway": True}, "runaway", 15),
    ],
)
def test_each_issue_costs_points_up_to_its_limit(signs, code, points):
    [reason] = health_of(Signs(turns=100, calls=100, **signs)).reasons
    assert (reason.code, reason.points) == (code, points)
    assert "{" not in reason.text


@pytest.mark.parametrize("signs", [{"outputs": 4, "errors": 4}, {"outputs": 20, "errors": 9}])
def test_a_few_errors_of_tools_cost_no_points(signs):
    assert health_of(Signs(turns=100, calls=100, **signs)).reasons == []


def test_all_issues_together_give_the_worst_grade_and_no_negative_score():
    names = ("pressed", "burst", "repeated", "mid_task", "spikes", "lost", "failures", "client")
    counts = dict.fromkeys(names, 9) | {"missed": 50, "outputs": 20, "errors": 20}
    worst = health_of(Signs(turns=9, calls=9, churning=True, runaway=True, **counts))
    assert (worst.score, worst.grade) == (0, "F")
    assert {reason.code for reason in worst.reasons} == set(RULES)
    assert [reason.points for reason in worst.reasons] == sorted(
        (rule.maximum for rule in RULES.values()), reverse=True
    )


def test_without_usage_and_compactions_there_is_no_grade():
    few = health_of(Signs(turns=100, calls=2, pressed=50))
    assert (few.grade, few.score, few.reasons) == ("", None, ())
    assert health_of(Signs(turns=100, compactions=1)).grade == "A"


def test_grades_fall_with_the_score():
    assert [grade for grade, _ in GRADES] == sorted(grade for grade, _ in GRADES)
    assert [minimum for _, minimum in GRADES] == sorted((minimum for _, minimum in GRADES), reverse=True)


def test_a_sparkline_keeps_the_peaks():
    sizes = [10] * 1_000
    sizes[517] = 99
    line = sparkline(sizes, 40)
    assert len(line) == 40
    assert max(line) == 99
    assert sparkline([3, 1, 2], 40) == [3, 1, 2]
    assert sparkline([], 40) == []


@pytest.mark.django_db
class TestProfiles:
    def test_the_scheduler_refreshes_profiles(self, project, django_assert_max_num_queries):
        session = make_session(project)
        assert profiles_refresh() == 1
        assert profiles_refresh() == 0
        assert session.profile.sparkline == [1_005, 2_005, 3_005]
        AgentSession.objects.update(turn_count=2)
        assert profiles_refresh() == 1
        assert SessionProfile.objects.get().turn_count == 2
        AgentSession.objects.update(edits_revision=9)
        with django_assert_max_num_queries(10):
            assert profiles_refresh() == 1

    def test_a_turn_without_usage_is_drawn_in_the_tokens_of_the_provider(self, project):
        turns = [reading_turn(n) for n in range(3)]
        session = make_session(project, [*turns, replace(reading_turn(3), usage=None)])
        line = profile_write(session=session).sparkline
        assert line == sorted(line)

    def test_it_works_in_batches_newest_first(self, project):
        for number in range(3):
            make_session(project, name=f"s-{number}")
        assert [profiles_refresh(limit=2), profiles_refresh(limit=2), profiles_refresh(limit=2)] == [2, 1, 0]

    def test_spikes_are_counted_and_reported(self, project):
        turns = [reading_turn(n, "x y z " * (20_000 if n == 8 else 20)) for n in range(12)]
        profile = profile_write(session=make_session(project, turns))
        assert [reason["code"] for reason in profile.reasons] == ["spikes"]

    def test_prompts_that_grow_up_to_the_hard_trigger_are_not_under_pressure(self, project):
        compacted, plain = compacted_session(project), make_session(project, name="s-2")
        for session, presses in ((compacted, False), (plain, True)):
            peak = max(profile_write(session=session).sparkline)
            session.budget_tokens, session.policy = int(peak / 0.9), {"preset": "balanced"}
            codes = {reason["code"] for reason in profile_write(session=session).reasons}
            assert ("pressure" in codes) == presses

    def test_each_prompt_is_compared_with_the_window_of_its_model(self, project):
        small, now = "claude-haiku-4-5", timezone.now()
        fields = {"model": small, "context_window": 200_000, "turn_count": 5}
        for model, codes in (("claude-sonnet-5-5", set()), (small, {"burst", "pressure"})):
            session = session_make(project, model, **fields)
            calls = [turn_make(session, n, now, model=model, prompt_reported=300_000) for n in range(5)]
            Turn.objects.bulk_create(calls)
            reasons = profile_write(session=session).reasons
            assert {reason["code"] for reason in reasons} & {"burst", "pressure"} == codes

    def test_lost_references_are_counted(self, project):
        session = compacted_session(project)
        before = profile_write(session=session)
        session.edits.update(referenced_turn=11)
        after = profile_write(session=session)
        assert after.lost_references == session.edits.count()
        assert after.score < before.score

    def test_content_that_the_model_expanded_is_not_lost(self, project):
        session = compacted_session(project)
        before = profile_write(session=session)
        session.edits.update(referenced_turn=11, referenced_how="expanded")
        assert profile_write(session=session).reasons == before.reasons

    def test_cache_misses_and_client_compactions_count(self, project):
        turns = [reading_turn(n) for n in range(30)]
        for turn in (10, 11, 12):
            turns[turn] = replace(turns[turn], usage=Usage(uncached_tokens=turn * 1_000, output_tokens=9))
        summary = ClientCompaction(trigger="auto", tokens_before=30_000)
        turns[20] = replace(turns[20], client_compaction=summary)
        profile = profile_write(session=make_session(project, turns))
        assert {reason["code"] for reason in profile.reasons} == {"cache", "client"}
        assert profile.score < 80

    def test_tools_that_fail_count_until_they_work_again(self, project):
        def imported(failed):
            turns = [reading_turn(n) for n in range(70)]
            for index in failed:
                [result] = turns[index].messages[0].body["content"]
                result["is_error"] = True
            session = make_session(project, turns, name=f"s-{min(failed)}")
            session_tools_count(session_id=session.pk)
            return profile_write(session=session)

        failing = imported(failed=range(55, 70))
        [reason] = failing.reasons
        assert reason["text"] == "75% of the newest tool outputs report an error"
        assert failing.grade == "C"
        assert imported(failed=range(1, 50)).grade == "A"

    def test_a_session_without_turns_has_a_profile(self, project):
        empty = project.agent_sessions.create(external_id="empty", format="openai")
        assert (profile_write(session=empty).sparkline, empty.profile.grade) == ([], "")

    @pytest.mark.slow
    def test_the_page_shows_the_reasons(self, member_client, project):
        session = compacted_session(project)
        page = member_client.get(address("session", session)).text
        assert "Calculating health" in page
        [health] = re.findall(r'hx-get="([^"]+/health/)"\s+hx-trigger="every 5s"', page)
        assert f'hx-get="{health}"' in member_client.get(health).text
        session.edits.update(referenced_turn=11)
        profile = profile_write(session=session)
        update = member_client.get(health).text
        assert f"grade-{profile.grade}" in update
        assert "hx-get" not in update
        page = member_client.get(address("session", session)).text
        assert f"grade-{profile.grade}" in page
        assert "removed content that was referenced later" in page
        [(url, anchor)] = re.findall(r'href="([^"#]+)#([^"]+)">How health is calculated', page)
        assert f'id="{anchor}"' in member_client.get(url).text
