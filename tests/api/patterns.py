"""The URL patterns of the REST API, of every app."""

from django.urls import URLPattern, get_resolver

API_PATTERNS: list[URLPattern] = [
    pattern
    for module in ("sessions.api.urls", "replay.api.urls")
    for pattern in get_resolver(module).url_patterns
    if isinstance(pattern, URLPattern)
]
