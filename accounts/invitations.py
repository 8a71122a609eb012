"""The page that accepts an invitation, for users with and without an account."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import UserCreationForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.models import Membership
from accounts.services.invitations import (
    InvitationError,
    invitation_accept,
    invitation_accept_as_new,
    invitation_find,
)


class AccountForm(UserCreationForm):  # type: ignore[type-arg]
    """A username and a password."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["username"].help_text = ""
        self.fields["password1"].help_text = "At least 10 characters."
        self.fields["password2"].help_text = ""


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitation_page(request: HttpRequest, token: str) -> HttpResponse:
    """Show the invitation and accept it. The token is the permission, so that the page needs no login."""
    invitation = invitation_find(token)
    if invitation is None:
        return render(request, "registration/invitation.html", status=404)
    user = request.user
    is_member = user.is_authenticated and invitation.project.memberships.filter(user=user).exists()
    form = None if request.user.is_authenticated else AccountForm(request.POST or None, label_suffix="")
    status = 200
    error = ""
    if request.method == "POST":
        try:
            membership = _accepted(request, token, form)
            if membership is not None:
                return redirect("sessions", slug=membership.project.slug)
        except InvitationError as problem:
            error = str(problem)
        status = 422
    context = {"invitation": invitation, "form": form, "error": error, "is_member": is_member}
    return render(request, "registration/invitation.html", context, status=status)


def _accepted(request: HttpRequest, token: str, form: AccountForm | None) -> Membership | None:
    """Return the new membership, or None if the form of a new account is invalid."""
    if form is None:
        return invitation_accept(token=token, user=request.user)  # type: ignore[arg-type]
    if not form.is_valid():
        return None
    username, password = form.cleaned_data["username"], form.cleaned_data["password1"]
    membership = invitation_accept_as_new(token=token, username=username, password=password)
    login(request, membership.user)
    return membership
