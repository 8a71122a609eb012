"""All URLs."""

from django.contrib.auth import views as auth_views
from django.urls import include, path

from accounts.invitations import invitation_page
from accounts.login import LoginForm, PasswordPage
from sessions.api import docs, health, otel
from sessions.api.mcp.views import Mcp

handler400 = "contextapp.error_pages.bad_request"
handler500 = "contextapp.error_pages.server_error"

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path(
        "login/",
        auth_views.LoginView.as_view(redirect_authenticated_user=True, authentication_form=LoginForm),
        name="login",
    ),
    path("password/", PasswordPage.as_view(), name="password_change"),
    path("invitations/<str:token>/", invitation_page, name="invitation"),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("api/schema/", docs.Schema.as_view(), name="schema"),
    path("api/docs/", docs.Docs.as_view(), name="docs"),
    path("mcp", Mcp.as_view(), name="mcp"),
    path("mcp/", Mcp.as_view()),
    path("mcp/s/<str:session_id>", Mcp.as_view(), name="mcp_session"),
    path("otel/v1/logs", otel.Logs.as_view(), name="otel_logs"),
    path("otel/v1/traces", otel.Traces.as_view(), name="otel_traces"),
    path("otel/v1/metrics", otel.Metrics.as_view(), name="otel_metrics"),
    path("api/v1/", include("sessions.api.urls")),
    path("api/v1/", include("replay.api.urls")),
    path("", include("sessions.pages.urls")),
    path("", include("replay.pages.urls")),
]

handler404 = "sessions.api.errors.unknown_url"
