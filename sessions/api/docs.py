"""`/api/schema/` and `/api/docs/`: the OpenAPI schema and the interactive documentation. Public."""

from __future__ import annotations

from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView


class Schema(SpectacularAPIView):
    """The OpenAPI schema, as YAML or JSON depending on the `Accept` header."""


class Docs(SpectacularSwaggerSplitView):
    """Swagger UI, served from our static files. Its script is a separate file because of our CSP."""

    url_name = "schema"
    template_name = "sessions/api_docs.html"
