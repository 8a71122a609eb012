"""The page Connect: settings to copy, the arrival of calls, and the gateway settings of a project."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from html import unescape

import pytest
from contextapp_client import ContextApp
from django.test import Client
from django.urls import reverse
from scripted_model import Reply, ScriptedModel

from accounts.models import ApiKey, AuditEvent, Project
from accounts.selectors import api_key_find, provider_secrets
from sessions.models import AgentSession

pytestmark = pytest.mark.django_db

PAGE = "/p/alpha/connect/"
SETTINGS = {
    "mode": "compact",
    "budget_tokens": "60000",
    "anthropic": "https://proxy.example.com",
    "openai": "",
}


def text_of(client: Client, address: str = PAGE) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def test_it_shows_settings_with_the_address_of_the_gateway(owner_client: Client) -> None:
    text = text_of(owner_client)
    assert "ANTHROPIC_BASE_URL=http://testserver:8001/gateway/anthropic" in text
    assert "http://testserver:8001/gateway/openai/v1" in text
    for name in ("Claude Code", "Codex", "Anthropic SDK", "OpenAI SDK", "LiteLLM"):
        assert name in text


def test_it_shows_settings_for_telemetry_and_mcp(owner_client: Client) -> None:
    text = text_of(owner_client)
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://testserver/otel\n" in text
    assert "http://testserver/otel/v1/traces" in text
    assert "claude mcp add --transport http contextapp http://testserver/mcp " in text


@pytest.mark.processes
def test_the_settings_for_the_api_run_as_shown(
    served_url: str, owner_client: Client, api_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none-is-needed")
    page = unescape(text_of(owner_client)).replace("http://testserver", served_url)
    shown = re.findall(r"<pre[^>]*>(.*?)</pre>", page.replace("ctx_YOUR_KEY", api_key), re.DOTALL)
    [program] = [block for block in shown if "contextapp_client" in block]
    [commands] = [block for block in shown if "curl" in block]
    # In a separate thread, because Playwright runs an event loop in the thread of the tests.
    with ScriptedModel([Reply("Done.")]) as model, ThreadPoolExecutor(1) as thread:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        thread.submit(exec, program, {}).result()
    done = subprocess.run(["sh", "-ec", commands], capture_output=True, text=True, check=True)
    assert '"messages":[{"role": "user"' in done.stdout
    app = ContextApp(served_url, api_key)
    assert [app.session(name).info()["messages"] for name in ("fix-42", "fix-43")] == [2, 1]


def test_the_address_can_be_set(owner_client: Client, settings: object) -> None:
    settings.CONTEXTAPP_GATEWAY_PUBLIC_URL = "https://ctx.example.com"  # type: ignore[attr-defined]
    assert "https://ctx.example.com/gateway/anthropic" in text_of(owner_client)


def test_a_created_key_is_filled_in_once(member_client: Client, project: Project) -> None:
    text = member_client.post(PAGE).content.decode()
    [key] = set(re.findall(r"ctx_[0-9a-f]{8}_[\w-]{43}", text))
    found = api_key_find(key)
    assert found is not None
    assert (found.project, found.scopes) == (project, ["push"])
    assert text.count(key) >= 12
    assert key not in text_of(member_client)


def test_a_key_for_the_mcp_tools_may_read(member_client: Client) -> None:
    member_client.post(PAGE, {"reads": "yes"})
    assert ApiKey.objects.get().scopes == ["push", "read"]


def test_only_owners_see_the_settings_of_the_gateway(viewer_client: Client, member_client: Client) -> None:
    assert "Gateway settings" not in text_of(viewer_client)
    assert "Viewers cannot create keys" in text_of(viewer_client)
    assert "Viewers cannot create keys" not in text_of(member_client)


@pytest.mark.parametrize("origin", ["gateway", "telemetry", "api"])
def test_the_first_call_appears(owner_client: Client, project: Project, origin: str) -> None:
    status = reverse("connect_status", args=["alpha"])
    assert "Waiting for the first call" in text_of(owner_client, status)
    AgentSession.objects.create(project=project, external_id="without-turns", origin="api")
    AgentSession.objects.create(project=project, external_id="imported", origin="codex", turn_count=1)
    assert "Waiting for the first call" in text_of(owner_client, status)
    session = AgentSession.objects.create(
        project=project, external_id="s", title="Fix the login", agent="fixer", origin=origin, turn_count=1
    )
    text = text_of(owner_client, status)
    assert str(session.pk) in text
    assert "Fix the login" in text


def test_settings_are_saved_and_recorded(owner_client: Client, project: Project) -> None:
    assert owner_client.post(reverse("connect_settings", args=["alpha"]), SETTINGS).status_code == 302
    project.refresh_from_db()
    assert project.gateway == {
        "mode": "compact",
        "budget_tokens": 60_000,
        "compacts_subscriptions": False,
        "adds_usage": False,
        "upstreams": {"anthropic": "https://proxy.example.com"},
    }
    assert AuditEvent.objects.filter(action="project.changed").exists()
    assert "https://proxy.example.com" in text_of(owner_client)


@pytest.mark.parametrize(
    "url", ["http://example.com", "https://127.0.0.1:8000", "https://10.0.0.1", "nonsense"]
)
def test_addresses_in_the_servers_own_network_are_refused(
    owner_client: Client, project: Project, url: str
) -> None:
    response = owner_client.post(reverse("connect_settings", args=["alpha"]), {**SETTINGS, "anthropic": url})
    assert response.status_code == 422
    text = response.content.decode()
    assert "This URL cannot be used" in text
    assert "CONTEXTAPP_GATEWAY_ALLOW_PRIVATE" in text
    project.refresh_from_db()
    assert project.gateway == {}


def test_provider_keys_are_stored_and_never_shown(owner_client: Client, project: Project) -> None:
    address = reverse("connect_provider_key", args=["alpha"])
    owner_client.post(address, {"provider": "anthropic", "secret": "sk-ant-secret"})
    project.refresh_from_db()
    assert provider_secrets(project) == {"anthropic": "sk-ant-secret"}
    text = text_of(owner_client)
    assert "Stored: Anthropic" in text
    assert "sk-ant-secret" not in text
    owner_client.post(address, {"provider": "anthropic", "secret": ""})
    project.refresh_from_db()
    assert provider_secrets(project) == {}
    log = text_of(owner_client, reverse("settings_audit", args=["alpha"]))
    assert "Set the provider key for anthropic" in log
