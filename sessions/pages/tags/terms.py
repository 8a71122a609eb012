"""What a word of the pages means, for its tooltip; nothing for a word that is not ours."""

from __future__ import annotations

from django import template

from sessions.pages import terms

register = template.Library()


@register.filter
def rule_meaning(name: str) -> str:
    return terms.RULES.get(name, "")


@register.filter
def preset_meaning(name: str) -> str:
    return terms.PRESETS.get(name, "")


@register.filter
def trigger_meaning(name: str) -> str:
    return terms.FIRINGS.get(name, "")
