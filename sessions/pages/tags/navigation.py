"""The main navigation for `base.html`."""

from django import template

from sessions.pages.navigation import navigation_entries

register = template.Library()
register.simple_tag(navigation_entries, name="navigation")
