"""Template filters for the tooltips of recorded names; "" for a name that has none."""

from __future__ import annotations

from django import template

from sessions.pages import terms

register = template.Library()

register.filter(terms.preset_meaning)
register.filter(terms.rule_meaning)
register.filter(terms.trigger_meaning)
