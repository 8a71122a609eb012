"""Agents that send telemetry to the instance, while their calls pass through the gateway or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from accounts.models import Project
from importers.base import LogFile
from sessions.models import AgentSession, ToolRun
from sessions.selectors.redaction import redaction_of
from sessions.services.imports.logs import log_import
from sessions.services.imports.reader import Reader
from tests.gateway import agents
from tests.gateway.double import Provider
from tests.gateway.running import Running
from tests.gateway.test_clients import counting_claude, counting_codex

pytestmark = pytest.mark.processes

#: The model calls in which the agents count to three.
CALLS = 4


def telemetry(url: str, key: str, protocol: str) -> dict[str, str]:
    """Return the settings of the guide for Claude Code."""
    return {
        "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"{url}/otel",
        "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer {key}",
        "OTEL_RESOURCE_ATTRIBUTES": "team.id=platform",
        # On exit, Claude Code waits only two seconds for the last export by default.
        "CLAUDE_CODE_OTEL_SHUTDOWN_TIMEOUT_MS": "60000",
        "CLAUDE_CODE_OTEL_FLUSH_TIMEOUT_MS": "60000",
    }


def import_log(project: Project, data: bytes, name: str) -> None:
    log = Reader(redaction=redaction_of(project)).read_file(LogFile(name=name, data=data))
    assert log.sessions
    for result in log_import(project=project, log=log):
        assert not isinstance(result, Exception), result


def figures(session: AgentSession) -> tuple[int, ...]:
    return session.turn_count, session.output_tokens, session.uncached_tokens, session.cache_read_tokens


def check_each_call_once(session: AgentSession) -> None:
    turns = list(session.turns.all())
    ids = [turn.request_id for turn in turns if turn.request_id]
    assert len(turns) == session.turn_count == CALLS
    assert len(set(ids)) == len(ids)
    assert session.cost_microusd == sum(turn.cost_microusd or 0 for turn in turns) > 0
    assert all(turn.message_count for turn in turns)


def test_claude_code_with_gateway_telemetry_and_log(
    gateway: Running,
    provider: Provider,
    served_url: str,
    project: Project,
    api_key: str,
    tmp_path: Path,
) -> None:
    provider.otherwise = counting_claude
    result, log = agents.claude_code(
        tmp_path / "home",
        gateway=gateway.url,
        key=api_key,
        prompt="Count to three with echo.",
        settings=telemetry(served_url, api_key, "http/protobuf"),
    )
    gateway.settle()
    [session] = AgentSession.objects.all()
    before = figures(session), session.cost_microusd
    assert (session.external_id, session.tags) == (result["session_id"], ["team.id:platform"])
    check_each_call_once(session)
    import_log(project, log, f"{result['session_id']}.jsonl")
    [session] = AgentSession.objects.all()
    assert (figures(session), session.cost_microusd) == before
    assert session.metadata.keys() >= {"cwd", "client_version", "team.id"}
    check_each_call_once(session)
    assert set(ToolRun.objects.values_list("name", flat=True)) == {"Bash"}


def test_claude_code_with_telemetry_and_log(
    provider: Provider,
    served_url: str,
    project: Project,
    api_key: str,
    tmp_path: Path,
) -> None:
    provider.otherwise = counting_claude
    direct = {"ANTHROPIC_BASE_URL": provider.url}
    result, log = agents.claude_code(
        tmp_path / "home",
        gateway="",
        key=api_key,
        prompt="Count to three with echo.",
        settings=direct | telemetry(served_url, api_key, "http/json"),
    )
    [session] = AgentSession.objects.all()
    before = figures(session)
    assert (session.external_id, session.message_count) == (result["session_id"], 0)
    assert before[0] == CALLS
    import_log(project, log, f"{result['session_id']}.jsonl")
    [session] = AgentSession.objects.all()
    assert figures(session) == before
    assert session.origin == "claude-code"
    check_each_call_once(session)


@pytest.mark.parametrize("protocol", ["binary", "json"])
def test_codex_with_gateway_telemetry_and_log(
    gateway: Running,
    provider: Provider,
    served_url: str,
    project: Project,
    api_key: str,
    tmp_path: Path,
    protocol: str,
) -> None:
    provider.otherwise = counting_codex
    exporter = f"""
        [otel]
        exporter = {{ otlp-http = {{ endpoint = "{served_url}/otel/v1/logs", protocol = "{protocol}", \
headers = {{ "Authorization" = "Bearer {api_key}" }} }} }}
    """
    events, log = agents.codex(
        tmp_path / "home",
        gateway=gateway.url,
        key=api_key,
        prompt="Count to three with echo.",
        config=exporter,
    )
    gateway.settle()
    [session] = AgentSession.objects.all()
    before = figures(session)
    assert session.external_id == events[0]["thread_id"]
    check_each_call_once(session)
    import_log(project, log, f"rollout-{events[0]['thread_id']}.jsonl")
    [session] = AgentSession.objects.all()
    assert figures(session) == before
    check_each_call_once(session)
    assert ToolRun.objects.count() == CALLS - 1
