"""`/api/schema/` and `/api/docs/`: what the API can do, for programs and for people. Public."""

from __future__ import annotations

from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView


class Schema(SpectacularAPIView):
    """The OpenAPI description: JSON, or YAML by the Accept header."""


class Docs(SpectacularSwaggerSplitView):
    """Swagger UI from our own static files; its script comes apart, as our content policy asks."""

    url_name = "schema"
    template_name = "sessions/api_docs.html"
