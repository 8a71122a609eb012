"""`/api/schema/` and `/api/docs/`: the OpenAPI schema and the interactive documentation. Public."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.http import HttpResponse
from django.utils.encoding import smart_bytes
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.request import Request


class Schema(SpectacularAPIView):
    """The OpenAPI schema, as YAML or JSON depending on the `Accept` header."""

    @extend_schema(exclude=True)
    def get(self, request: Request, *_: Any, **__: Any) -> HttpResponse:
        """Return the schema, which each process generates once: it takes a second, without a key."""
        chosen = request.accepted_renderer
        name = f'inline; filename="contextapp.{chosen.format}"'
        return HttpResponse(
            _rendered(chosen.format), content_type=chosen.media_type, headers={"Content-Disposition": name}
        )


@cache
def _rendered(format: str) -> bytes:
    renderer = next(each for each in Schema.renderer_classes if each.format == format)
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return smart_bytes(renderer().render(schema))


class Docs(SpectacularSwaggerSplitView):
    """Swagger UI, served from our static files. Its script is a separate file because of our CSP."""

    url_name = "schema"
    template_name = "sessions/api_docs.html"
