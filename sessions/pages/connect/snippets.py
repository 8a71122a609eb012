"""Settings of agents, ready to copy: for the gateway, telemetry, the API, and the MCP server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest

#: The key in the settings until one is created on the page.
PLACEHOLDER = "ctx_YOUR_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """Settings of one kind of agent: their location and text."""

    id: str
    title: str
    place: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnippetGroup:
    """Settings of one way to connect, and what it does."""

    title: str
    about: str
    snippets: Sequence[Snippet]


def gateway_url(request: HttpRequest) -> str:
    """Return the URL at which agents reach the gateway."""
    if settings.CONTEXTAPP_GATEWAY_PUBLIC_URL:
        return f"{settings.CONTEXTAPP_GATEWAY_PUBLIC_URL}/gateway"
    host = urlsplit(f"//{request.get_host()}").hostname or "127.0.0.1"
    name = f"[{host}]" if ":" in host else host
    return f"{request.scheme}://{name}:{settings.CONTEXTAPP_GATEWAY_PORT}/gateway"


def snippet_groups(request: HttpRequest, key: str) -> Sequence[SnippetGroup]:
    """Return the settings for each way to connect and each kind of agent."""
    url = f"{request.scheme}://{request.get_host()}"
    return (
        SnippetGroup(
            title="Gateway",
            about="Records whole conversations. The gateway forwards the agent's calls unchanged, or with "
            "compacted prompts in compact mode.",
            snippets=_gateway(gateway_url(request), key),
        ),
        SnippetGroup(
            title="Telemetry",
            about="Records the size, cost and cache use of each call without changing how calls are sent. "
            "Works with subscriptions.",
            snippets=_telemetry(f"{url}/otel", key),
        ),
        SnippetGroup(
            title="API",
            about="Gives your agent full control: it fetches the prompt before it calls the model, and "
            "pushes the answer afterwards. The key needs the scope read.",
            snippets=_api(url, key),
        ),
        SnippetGroup(
            title="MCP tools",
            about="Let the agent search its history, restore removed content and keep notes. The key needs "
            "the scope read.",
            snippets=_mcp(f"{url}/mcp", key),
        ),
    )


def _gateway(url: str, key: str) -> Sequence[Snippet]:
    return (
        Snippet(
            id="claude-code",
            title="Claude Code",
            place="Run in your shell, or add to “env” in ~/.claude/settings.json. Works with an API key and "
            "with a Claude subscription.",
            text=f"export ANTHROPIC_BASE_URL={url}/anthropic\n"
            f'export ANTHROPIC_CUSTOM_HEADERS="X-Contextapp-Key: {key}"\n',
        ),
        Snippet(id="codex", title="Codex", place="Add to ~/.codex/config.toml.", text=_codex(url, key)),
        Snippet(
            id="anthropic-sdk",
            title="Anthropic SDK",
            place="Python; other languages have the same options.",
            text="import anthropic\n\n"
            f'client = anthropic.Anthropic(\n    base_url="{url}/anthropic",\n'
            f'    default_headers={{"X-Contextapp-Key": "{key}"}},\n)\n',
        ),
        Snippet(
            id="openai-sdk",
            title="OpenAI SDK",
            place="Python; other languages have the same options.",
            text="import openai\n\n"
            f'client = openai.OpenAI(\n    base_url="{url}/openai/v1",\n'
            f'    default_headers={{"X-Contextapp-Key": "{key}"}},\n)\n',
        ),
        Snippet(
            id="gemini-cli",
            title="Gemini CLI",
            place="Run in your shell. Requires a Gemini API key, and HTTPS unless the gateway runs on "
            "this machine.",
            text=f"export GOOGLE_GEMINI_BASE_URL={url}/gemini\n"
            f'export GEMINI_CLI_CUSTOM_HEADERS="X-Contextapp-Key: {key}"\n',
        ),
        Snippet(
            id="gemini-sdk",
            title="Google Gen AI SDK",
            place="Python; other languages have the same options.",
            text="from google import genai\n\n"
            "client = genai.Client(http_options={\n"
            f'    "base_url": "{url}/gemini",\n'
            f'    "headers": {{"X-Contextapp-Key": "{key}"}},\n}})\n',
        ),
        Snippet(
            id="litellm",
            title="LiteLLM",
            place="Add to the model_list in config.yaml.",
            text="- model_name: claude-sonnet-5-5\n  litellm_params:\n"
            "    model: anthropic/claude-sonnet-5-5\n"
            f"    api_base: {url}/anthropic\n    extra_headers:\n      X-Contextapp-Key: {key}\n",
        ),
        Snippet(
            id="url",
            title="Clients without custom headers",
            place="The base URL contains the key.",
            text=f"{url}/k/{key}/anthropic\n{url}/k/{key}/openai/v1\n{url}/k/{key}/gemini\n",
        ),
    )


def _codex(url: str, key: str) -> str:
    return (
        'model_provider = "contextapp"\n\n'
        "[model_providers.contextapp]\n"
        'name = "contextapp"\n'
        f'base_url = "{url}/openai/v1"\n'
        'wire_api = "responses"\n'
        'env_key = "OPENAI_API_KEY"\n'
        "supports_websockets = false\n"
        f'http_headers = {{ "X-Contextapp-Key" = "{key}" }}\n'
    )


def _telemetry(url: str, key: str) -> Sequence[Snippet]:
    exporter = f'endpoint = "{url}/v1/logs", protocol = "binary"'
    return (
        Snippet(
            id="telemetry-claude-code",
            title="Claude Code",
            place="Run in your shell, or add to “env” in the user's or the managed settings.",
            text="export CLAUDE_CODE_ENABLE_TELEMETRY=1\n"
            "export OTEL_LOGS_EXPORTER=otlp\n"
            "export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n"
            f"export OTEL_EXPORTER_OTLP_ENDPOINT={url}\n"
            f'export OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer {key}"\n',
        ),
        Snippet(
            id="telemetry-codex",
            title="Codex",
            place="Add to ~/.codex/config.toml.",
            text="[otel]\nexporter = { otlp-http = { "
            f'{exporter}, headers = {{ "Authorization" = "Bearer {key}" }} }} }}\n',
        ),
        Snippet(
            id="telemetry-sdk",
            title="OpenTelemetry SDK",
            place="Set in the environment of a program whose model client is instrumented.",
            text=f"export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT={url}/v1/traces\n"
            "export OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf\n"
            f'export OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer%20{key}"\n',
        ),
    )


def _api(url: str, key: str) -> Sequence[Snippet]:
    return (
        Snippet(
            id="python",
            title="Python client",
            place="Run pip install ./clients/python in the contextapp folder.",
            text="from anthropic import Anthropic\n"
            "from contextapp_client import ContextApp\n\n"
            f'app = ContextApp("{url}", "{key}")\n'
            'settings = {"model": "claude-sonnet-5-5", "budget": {"input_tokens": 60_000}}\n'
            'session = app.session("fix-42", create=settings)\n'
            'session.push([{"role": "user", "content": "Make the tests pass."}])\n'
            "prompt = session.prompt()\n"
            "answer = Anthropic().messages.create(\n"
            '    model="claude-sonnet-5-5", max_tokens=8_000, **prompt.params\n)\n'
            "session.push([answer])\n",
        ),
        Snippet(
            id="curl",
            title="curl",
            place="The last response contains the prompt.",
            text=f"URL={url}/api/v1\n"
            f'api() {{ curl -sS -H "Authorization: Bearer {key}" "$@"; }}\n'
            'json() { api -H "Content-Type: application/json" "$@"; }\n'
            """json $URL/sessions/ -d '{"id": "fix-43", "model": "claude-sonnet-5-5"}'\n"""
            "json $URL/sessions/fix-43/turns/ -d \\\n"
            """  '{"messages": [{"role": "user", "content": "Make the tests pass."}]}'\n"""
            "api $URL/sessions/fix-43/prompt/\n",
        ),
    )


def _mcp(url: str, key: str) -> Sequence[Snippet]:
    return (
        Snippet(
            id="mcp-claude-code",
            title="Claude Code",
            place="Run in your shell.",
            text=f'claude mcp add --transport http contextapp {url} --header "Authorization: Bearer {key}"\n',
        ),
        Snippet(
            id="mcp-codex",
            title="Codex",
            place="Add to ~/.codex/config.toml.",
            text=f'[mcp_servers.contextapp]\nurl = "{url}"\n'
            f'http_headers = {{ "Authorization" = "Bearer {key}" }}\n',
        ),
    )
