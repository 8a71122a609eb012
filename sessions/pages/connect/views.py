"""The page Connect: settings of agents, the arrival of their calls, and the gateway settings of a project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import Scope
from accounts.services.api_keys import api_key_create
from accounts.services.gateway import gateway_update, provider_secret_set
from sessions.pages.access import Viewer, actor_of, owner_of, page, viewer_of
from sessions.pages.connect.snippets import PLACEHOLDER, gateway_url, snippet_groups
from sessions.pages.settings.common import PlainForm
from sessions.selectors.lists.sessions import connected_session_newest
from sessions.selectors.token_budgets import MAX_BUDGET
from sessions.services.targets import ForbiddenAddress, url_check

_PROVIDERS = (("anthropic", "Anthropic"), ("openai", "OpenAI"), ("gemini", "Gemini"))
_MODES = (
    ("observe", "Observe: record calls and forward them unchanged"),
    ("compact", "Compact: record calls and compact their prompts"),
)


#: What an operator can do about a URL that is not allowed.
_PRIVATE_HINT = (
    " To allow HTTP and private addresses, start contextapp with CONTEXTAPP_GATEWAY_ALLOW_PRIVATE=1."
)


class ProviderUrlField(forms.CharField):
    """The base URL of another server with a provider's API, or "" for the server of `owner`."""

    def __init__(self, provider: str, *, owner: str) -> None:
        hint = f"Base URL of another server with {provider}'s API. Leave blank to use {owner}."
        super().__init__(required=False, max_length=500, label=f"{provider} URL", help_text=hint)

    def clean(self, value: Any) -> str:
        url: str = super().clean(value).rstrip("/")
        allow_private = settings.CONTEXTAPP_GATEWAY_ALLOW_PRIVATE
        try:
            if url:
                url_check(url, allow_private=allow_private)
        except ForbiddenAddress as error:
            hint = "" if allow_private else _PRIVATE_HINT
            raise forms.ValidationError(f"This URL cannot be used: {error}.{hint}") from None
        return url


class GatewayForm(PlainForm):
    mode = forms.ChoiceField(choices=_MODES, widget=forms.RadioSelect)
    budget_tokens = forms.IntegerField(
        required=False,
        min_value=1_000,
        max_value=MAX_BUDGET,
        label="Budget for new sessions",
        help_text="In input tokens. Leave blank to use the model's context window.",
        error_messages={"min_value": "Enter at least 1,000 tokens, or leave the field blank."},
    )
    compacts_subscriptions = forms.BooleanField(
        required=False,
        label="Compact sessions that use a Claude subscription",
        help_text="Check that the provider's terms allow it.",
    )
    adds_usage = forms.BooleanField(
        required=False,
        label="Request usage in Chat Completions streams",
        help_text="Adds stream_options.include_usage. Without it, OpenAI reports no usage for streams.",
    )
    anthropic = ProviderUrlField("Anthropic", owner="Anthropic")
    openai = ProviderUrlField("OpenAI", owner="OpenAI")
    gemini = ProviderUrlField("Gemini", owner="Google")

    @property
    def changes(self) -> Mapping[str, Any]:
        data = self.cleaned_data
        names = ("mode", "budget_tokens", "compacts_subscriptions", "adds_usage")
        upstreams = {name: data[name] for name, _ in _PROVIDERS if data[name]}
        return {**{name: data[name] for name in names}, "upstreams": upstreams}


class ProviderKeyForm(PlainForm):
    secret_fields = ("secret",)

    provider = forms.ChoiceField(choices=_PROVIDERS)
    secret = forms.CharField(
        required=False,
        max_length=500,
        label="API key",
        help_text="Stored encrypted. Leave blank to remove the stored key.",
        widget=forms.PasswordInput,
    )


@require_http_methods(["GET", "HEAD", "POST"])
def connect(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the settings. A POST creates a key and shows the settings with it, once."""
    viewer = viewer_of(request, slug)
    if request.method != "POST":
        return _page(request, viewer, {})
    if not viewer.may_write:
        raise PermissionDenied("Only members with write access can create API keys.")
    scopes = [Scope.PUSH, Scope.READ] if request.POST.get("reads") else [Scope.PUSH]
    _, text = api_key_create(project=viewer.project, name="Agent", scopes=scopes, actor=actor_of(request))
    return _page(request, viewer, {"key": text})


@require_safe
def connect_status(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request, slug)
    newest = connected_session_newest(project=viewer.project)
    return page(request, "connect/_status.html", {"viewer": viewer, "newest": newest})


@require_POST
def gateway_settings(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = owner_of(request, slug)
    form = GatewayForm(request.POST)
    if not form.is_valid():
        return _page(request, viewer, {"form": form})
    gateway_update(project=viewer.project, changes=form.changes, actor=actor_of(request))
    messages.success(request, "Gateway settings saved.")
    return redirect("connect", slug=slug)


@require_POST
def provider_key(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = owner_of(request, slug)
    form = ProviderKeyForm(request.POST)
    if not form.is_valid():
        return _page(request, viewer, {"key_form": form})
    name, secret = form.cleaned_data["provider"], form.cleaned_data["secret"]
    provider_secret_set(project=viewer.project, provider=name, secret=secret, actor=actor_of(request))
    messages.success(request, f"{dict(_PROVIDERS)[name]} key {'saved' if secret else 'removed'}.")
    return redirect("connect", slug=slug)


def _page(request: HttpRequest, viewer: Viewer, given: Mapping[str, Any]) -> HttpResponse:
    gateway = viewer.project.gateway
    upstreams = gateway.get("upstreams", {})
    initial = {"mode": "observe", **gateway, **{name: upstreams.get(name, "") for name, _ in _PROVIDERS}}
    url = gateway_url(request)
    context = {
        "viewer": viewer,
        "url": url,
        "groups": snippet_groups(request, given.get("key", PLACEHOLDER)),
        "placeholder": PLACEHOLDER,
        "form": GatewayForm(initial=initial),
        "key_form": ProviderKeyForm(),
        "stored": [label for name, label in _PROVIDERS if name in viewer.project.provider_secrets],
        "newest": connected_session_newest(project=viewer.project),
        **given,
    }
    return page(request, "connect/page.html", context)
