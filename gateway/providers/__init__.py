"""The providers that the gateway forwards to. To add one, write its module and add an instance here."""

from __future__ import annotations

from gateway.providers import anthropic, gemini, openai
from gateway.providers.base import Answer, Identity, Provider

__all__ = ["PROVIDERS", "Answer", "Identity", "Provider"]

PROVIDERS: dict[str, Provider] = {
    provider.name: provider for provider in (anthropic.Anthropic(), openai.OpenAI(), gemini.Gemini())
}
