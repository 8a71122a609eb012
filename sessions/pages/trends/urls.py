"""URLs of the trends pages."""

from __future__ import annotations

from django.urls import path

from sessions.pages.trends import cost_change, export, projects, saved, views

urlpatterns = [
    path("p/<slug:slug>/trends/", views.trends, name="trends"),
    path("p/<slug:slug>/trends/series/", views.trends_series, name="trends_series"),
    path("p/<slug:slug>/trends/table/", views.trends_table, name="trends_table"),
    path("p/<slug:slug>/trends/prompts/", views.trends_prompts, name="trends_prompts"),
    path("p/<slug:slug>/trends/cost-change/", cost_change.trends_cost_change, name="trends_cost_change"),
    path("p/<slug:slug>/trends/presets/", saved.trends_preset_create, name="trends_preset_create"),
    path(
        "p/<slug:slug>/trends/presets/<int:number>/delete/",
        saved.trends_preset_delete,
        name="trends_preset_delete",
    ),
    path("p/<slug:slug>/trends/projects/", projects.trends_projects, name="trends_projects"),
    path("p/<slug:slug>/trends/projects/csv/", export.trends_projects_csv, name="trends_projects_csv"),
    path("p/<slug:slug>/trends/csv/", export.trends_csv, name="trends_csv"),
]
