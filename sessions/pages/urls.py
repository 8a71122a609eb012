"""URLs of all pages."""

from __future__ import annotations

from sessions.pages.lab import urls as lab_urls
from sessions.pages.listing import urls as listing_urls
from sessions.pages.memory import urls as memory_urls
from sessions.pages.session import urls as session_urls
from sessions.pages.settings import urls as settings_urls
from sessions.pages.trends import urls as trends_urls

urlpatterns = [
    *settings_urls.urlpatterns,
    *trends_urls.urlpatterns,
    *lab_urls.urlpatterns,
    *listing_urls.urlpatterns,
    *session_urls.urlpatterns,
    *memory_urls.urlpatterns,
]
