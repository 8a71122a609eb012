"""The project's members and their roles."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from accounts.models import Membership, Role
from accounts.services.members import MemberError, member_add, member_remove, member_role_set
from sessions.pages.access import Viewer, actor_of, owner_of, viewer_of
from sessions.pages.settings.common import PlainForm, settings_page


class MemberForm(PlainForm):
    username = forms.CharField(
        label="Username",
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        help_text="If the account does not exist, it is created and its password is shown once.",
    )
    email = forms.EmailField(label="Email", required=False, help_text="Optional. Used for alerts.")
    role = forms.ChoiceField(
        choices=Role.choices,
        initial=Role.MEMBER,
        help_text="Viewers can read, members can also change sessions, and owners can also change settings.",
    )


class RoleForm(PlainForm):
    role = forms.ChoiceField(choices=Role.choices)


@require_http_methods(["GET", "HEAD", "POST"])
def project_members(request: HttpRequest, slug: str) -> HttpResponse:
    if request.method != "POST":
        return _page(request, viewer_of(request, slug), {"form": MemberForm()})
    viewer = owner_of(request, slug)
    form = MemberForm(request.POST)
    if not form.is_valid():
        return _page(request, viewer, {"form": form}, status=422)
    try:
        added, password = member_add(project=viewer.project, actor=actor_of(request), **form.cleaned_data)
    except MemberError as error:
        form.add_error("username", str(error))
        return _page(request, viewer, {"form": form}, status=422)
    if password is not None:
        # Rendered directly: a redirect would have to store the password somewhere.
        return _page(request, viewer, {"form": MemberForm(), "added": added, "password": password})
    messages.success(request, f"{added.user.get_username()} was added.")
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
        messages.success(request, f"{membership.user.get_username()} was removed.")
    except MemberError as error:
        messages.error(request, str(error))
    return redirect("settings_members", slug=slug)


def _page(
    request: HttpRequest, viewer: Viewer, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    rows = viewer.project.memberships.select_related("user").order_by("user__username")
    context = {"members": rows, "roles": Role.values, **context}
    return settings_page(request, viewer, "members.html", context, status=status)


def _membership(viewer: Viewer, id: int) -> Membership:
    row = viewer.project.memberships.select_related("user", "project").filter(pk=id).first()
    if row is None:
        raise Http404("Member not found")
    return row
