"""The project's members, their roles, and open invitations."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from accounts.models import Membership, Role
from accounts.selectors import api_keys_of_member
from accounts.services.invitations import invitation_create, invitation_revoke, invitation_send
from accounts.services.members import MemberError, member_remove, member_role_set
from sessions.pages.access import Viewer, actor_of, owner_of
from sessions.pages.settings.common import PlainForm, sent_by_owner, settings_page


class InvitationForm(PlainForm):
    email = forms.EmailField(
        label="Email",
        required=False,
        max_length=254,
        help_text="Optional. The link is sent to this address if the server can send mail.",
    )
    role = forms.ChoiceField(
        choices=Role.choices,
        initial=Role.MEMBER,
        help_text="Viewers can read, members can also change sessions, and owners can also change settings.",
    )


class RoleForm(PlainForm):
    role = forms.ChoiceField(choices=Role.choices)


@require_http_methods(["GET", "HEAD", "POST"])
def project_members(request: HttpRequest, slug: str) -> HttpResponse:
    viewer, data = sent_by_owner(request, slug)
    form = InvitationForm(data)
    if not form.is_valid():
        return _page(request, viewer, {"form": form})
    invitation, token = invitation_create(
        project=viewer.project, actor=actor_of(request), **form.cleaned_data
    )
    link = request.build_absolute_uri(reverse("invitation", args=[token]))
    sent = invitation_send(invitation, url=link)
    # Rendered directly: a redirect would have to store the link somewhere.
    context = {"form": InvitationForm(), "link": link, "invitation": invitation, "sent": sent}
    return _page(request, viewer, context)


@require_POST
def invitation_delete(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    viewer = owner_of(request, slug)
    invitation = get_object_or_404(viewer.project.invitations.select_related("project"), pk=id)
    invitation_revoke(invitation=invitation, actor=actor_of(request))
    messages.success(request, "The invitation was revoked.")
    return redirect("settings_members", slug=slug)


@require_POST
def member_change(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    viewer = owner_of(request, slug)
    form = RoleForm(request.POST)
    membership = _membership(viewer, member)
    if form.is_valid():
        try:
            member_role_set(membership=membership, role=form.cleaned_data["role"], actor=actor_of(request))
            messages.success(request, f"{membership.user.get_username()} now has the role {membership.role}.")
        except MemberError as error:
            messages.error(request, str(error))
    return redirect("settings_members", slug=slug)


@require_POST
def member_delete(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    viewer = owner_of(request, slug)
    membership = _membership(viewer, member)
    try:
        member_remove(membership=membership, actor=actor_of(request))
    except MemberError as error:
        messages.error(request, str(error))
    else:
        if membership.user == request.user:
            messages.success(request, f"You left the project {viewer.project.name}.")
            return redirect("home")
        keys = api_keys_of_member(project=viewer.project, created_by=membership.user).count()
        still = f" {keys} API key{pluralize(keys)} of this user still {pluralize(keys, 'works,work')}."
        messages.success(request, f"{membership.user.get_username()} was removed.{still if keys else ''}")
    return redirect("settings_members", slug=slug)


def _page(request: HttpRequest, viewer: Viewer, context: dict[str, Any]) -> HttpResponse:
    rows = list(viewer.project.memberships.select_related("user").order_by("user__username"))
    owners = [row for row in rows if row.role == Role.OWNER]
    only_owner = owners[0] if len(owners) == 1 else None
    context = {"members": rows, "only_owner": only_owner, "roles": Role.values, **context}
    if viewer.is_owner:
        valid = viewer.project.invitations.filter(expires_at__gt=timezone.now())
        context["invitations"] = valid.select_related("created_by").order_by("-created_at")
    return settings_page(request, viewer, "members.html", context)


def _membership(viewer: Viewer, id: int) -> Membership:
    return get_object_or_404(viewer.project.memberships.select_related("user", "project"), pk=id)
