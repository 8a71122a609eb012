"""URLs of the import pages."""

from __future__ import annotations

from django.urls import path

from sessions.pages.imports import views

_IMPORTS = "p/<slug:slug>/imports/"

urlpatterns = [
    path(_IMPORTS, views.imports, name="imports"),
    path(f"{_IMPORTS}<uuid:job>/", views.import_job, name="imports_job"),
    path(f"{_IMPORTS}<uuid:job>/cancel/", views.import_cancel, name="imports_cancel"),
]
