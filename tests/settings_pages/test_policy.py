"""The policy of new sessions: its settings, steps and tool rules, and the preview."""

from __future__ import annotations

import pytest

from compaction.policy import PRESETS
from sessions.services.sessions.lifecycle import NewSession, session_create
from tests.markup import address, one_line
from tests.pages.transcripts import make_session, reading_turn

pytestmark = pytest.mark.django_db


def test_settings_outside_the_form_are_kept_until_the_preset_changes(project, owner_client):
    tools = [{"pattern": "db_*", "exempt": True}]
    project.default_policy = {"preset": "masking", "target": 0.5, "tools": tools}
    project.save()
    assert '<option value="masking" selected>' in owner_client.get(address("settings_policy")).text
    owner_client.post(address("settings_policy"), {"preset": "masking", "target": "0.4"})
    project.refresh_from_db()
    assert project.default_policy == {"preset": "masking", "target": 0.4, "tools": tools}
    owner_client.post(address("settings_policy"), {"preset": "balanced"})
    project.refresh_from_db()
    assert project.default_policy == {"preset": "balanced"}


RULE = {"rule_pattern": "", "rule_outputs": "", "rule_clip_tokens": "", "rule_is_read": ""}


def rules(*entered):
    """The fields of the rows: each is sent once for each row, in order."""
    return {name: [{**RULE, **row}[name] for row in entered] for name in RULE}


def test_tool_rules_are_entered_and_deleted(project, owner_client):
    entered = rules(
        {"rule_pattern": "db_*", "rule_outputs": "exempt"},
        {},
        {
            "rule_pattern": "cat",
            "rule_outputs": "never_collapse",
            "rule_clip_tokens": "900",
            "rule_is_read": "yes",
        },
    )
    owner_client.post(address("settings_policy"), {"preset": "balanced", **entered})
    project.refresh_from_db()
    assert project.default_policy["tools"] == [
        {"pattern": "db_*", "exempt": True},
        {"pattern": "cat", "never_collapse": True, "clip_tokens": 900, "is_read": True},
    ]
    shown = owner_client.get(address("settings_policy")).text
    assert 'value="db_*"' in shown
    assert shown.index('value="db_*"') < shown.index('value="cat"')
    owner_client.post(address("settings_policy"), {"preset": "balanced", **rules({}, {})})
    project.refresh_from_db()
    assert project.default_policy == {"preset": "balanced"}


def test_an_invalid_rule_is_explained_and_kept_in_the_form(project, owner_client):
    entered = rules({"rule_pattern": "db_*", "rule_clip_tokens": "7"})
    response = owner_client.post(address("settings_policy"), {"preset": "balanced", **entered})
    assert response.status_code == 422
    assert "must be at least 50" in response.text
    assert 'value="db_*"' in response.text
    project.refresh_from_db()
    assert project.default_policy == {}


def test_single_steps_are_turned_off_and_on(project, owner_client):
    fields = {"preset": "masking", "step_dedupe": "off", "step_recap": "on", "step_clip": ""}
    owner_client.post(address("settings_policy"), fields)
    project.refresh_from_db()
    steps = project.default_policy["steps"]
    assert set(steps) ^ set(PRESETS["masking"].steps) == {"dedupe", "recap"}
    assert steps.index("recap") < steps.index("offload")  # in the order in which they run
    shown = one_line(owner_client.get(address("settings_policy")))
    for name, state in {"dedupe": "off", "recap": "on", "clip": ""}.items():
        select = shown.split(f'name="step_{name}"')[1].split("</select>")[0]
        assert f'<option value="{state}" selected>' in select
    owner_client.post(address("settings_policy"), {"preset": "masking", "step_dedupe": "", "step_recap": ""})
    project.refresh_from_db()
    assert project.default_policy == {"preset": "masking"}


def test_a_preview_follows_the_steps(project, viewer_client):
    turns = [reading_turn(n, f"{n}: " + "a line of a file\n" * 300) for n in range(12)]
    session = make_session(project, turns)
    query = {"preset": "masking", "session": str(session.pk), "tail_share": "0.05"}
    assert "Shortens" in viewer_client.get(address("settings_policy_preview"), query).text
    none = {f"step_{name}": "off" for name in PRESETS["masking"].steps}
    shown = viewer_client.get(address("settings_policy_preview"), query | none).text
    assert "would remove nothing" in shown


def test_new_sessions_use_the_default_policy(project, owner_client):
    owner_client.post(address("settings_policy"), {"preset": "aggressive", "hard": "0.9"})
    session, _ = session_create(project_id=project.pk, new=NewSession(format="openai"))
    assert session.policy == {"preset": "aggressive", "hard": 0.9}
    own = NewSession(format="openai", policy={"preset": "off"})
    assert session_create(project_id=project.pk, new=own)[0].policy == {"preset": "off"}
    over = NewSession(format="openai", policy={"soft": 0.5})
    assert session_create(project_id=project.pk, new=over)[0].policy["soft"] == 0.5


@pytest.mark.parametrize("wrong", [{"soft": "1.7"}, {"target": "0.99", "hard": "0.5"}, {"tail_share": "nan"}])
def test_an_invalid_policy_is_rejected(owner_client, project, wrong):
    response = owner_client.post(address("settings_policy"), {"preset": "balanced", **wrong})
    assert response.status_code == 422
    project.refresh_from_db()
    assert project.default_policy == {}


def test_a_preview_writes_nothing(project, viewer_client):
    session = make_session(project)
    query = {"preset": "balanced", "session": str(session.pk)}
    response = viewer_client.get(address("settings_policy_preview"), query)
    assert response.status_code == 200
    assert str(session).encode() in response.content
    assert not session.compactions.exists()


def test_a_preview_of_another_project_s_session_is_404(other_project, viewer_client):
    query = {"preset": "balanced", "session": str(make_session(other_project).pk)}
    assert viewer_client.get(address("settings_policy_preview"), query).status_code == 404


def test_the_engine_is_chosen(project, owner_client):
    owner_client.post(address("settings_policy"), {"preset": "balanced", "engine": "provider"})
    project.refresh_from_db()
    assert project.default_policy == {"preset": "balanced", "engine": "provider"}
    assert '<option value="provider" selected>' in owner_client.get(address("settings_policy")).text
    owner_client.post(address("settings_policy"), {"preset": "balanced", "engine": ""})
    project.refresh_from_db()
    assert project.default_policy == {"preset": "balanced"}


def test_instructions_for_summaries_are_entered_and_deleted(project, owner_client):
    entered = {"preset": "balanced", "summary_instructions": "Keep every port.\nLeave out greetings."}
    owner_client.post(address("settings_policy"), entered)
    project.refresh_from_db()
    assert project.default_policy["summary_instructions"].splitlines() == [
        "Keep every port.",
        "Leave out greetings.",
    ]
    assert "Keep every port.\n" in owner_client.get(address("settings_policy")).text
    too_long = owner_client.post(address("settings_policy"), {**entered, "summary_instructions": "a" * 2_001})
    assert "at most 2000 characters" in too_long.text
    owner_client.post(address("settings_policy"), {"preset": "balanced"})
    project.refresh_from_db()
    assert project.default_policy == {"preset": "balanced"}


def test_long_instructions_are_shortened_on_the_page_of_a_session(project, owner_client):
    policy = {"preset": "balanced", "summary_instructions": "Keep every port. " * 50}
    session = session_create(project_id=project.pk, new=NewSession(policy=policy))[0]
    shown = one_line(owner_client.get(f"/p/{project.slug}/sessions/{session.pk}/compactions/"))
    assert "with summary_instructions Keep every port." in shown
    assert shown.count("Keep every port.") < 10
