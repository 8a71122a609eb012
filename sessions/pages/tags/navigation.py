"""The main navigation, for the frame of every page."""

from django import template

from sessions.pages.navigation import places_of

register = template.Library()
register.simple_tag(places_of, name="places")
