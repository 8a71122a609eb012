"""Settings of agents, ready to copy."""

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


def gateway_url(request: HttpRequest) -> str:
    """Return the URL at which agents reach the gateway."""
    if settings.CONTEXTAPP_GATEWAY_PUBLIC_URL:
        return f"{settings.CONTEXTAPP_GATEWAY_PUBLIC_URL}/gateway"
    host = urlsplit(f"//{request.get_host()}").hostname or "127.0.0.1"
    name = f"[{host}]" if ":" in host else host
    return f"{request.scheme}://{name}:{settings.CONTEXTAPP_GATEWAY_PORT}/gateway"


def snippets(url: str, key: str) -> Sequence[Snippet]:
    """Return the settings for each kind of agent."""
    return (
        Snippet(
            id="claude-code",
            title="Claude Code",
            place="Run in your shell, or add to the object env in ~/.claude/settings.json. Works with an "
            "API key and with a Claude subscription.",
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
            text=f"{url}/k/{key}/anthropic\n{url}/k/{key}/openai/v1\n",
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
