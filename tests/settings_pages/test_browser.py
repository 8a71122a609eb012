"""Settings in a real browser: irreversible actions ask for confirmation."""

from __future__ import annotations

import re

import pytest
from django.db import transaction
from django.urls import reverse
from playwright.sync_api import expect

from accounts.actors import Actor
from accounts.models import Project
from accounts.services.api_keys import api_key_create
from sessions.models import WebhookEvent

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_revoking_a_key_requires_confirmation_even_without_javascript(page_as, owner, project):
    api_key_create(project=project, name="CI agents", scopes=["read"])
    page = page_as(owner)
    page.context.new_cdp_session(page).send("Emulation.setScriptExecutionDisabled", {"value": True})
    page.goto(reverse("settings_keys", args=[project.slug]))
    revoke, question = page.get_by_role("button", name="Revoke CI agents"), page.get_by_role("alertdialog")

    revoke.click()
    expect(question).to_contain_text("Revoke the key “CI agents”?")
    question.get_by_role("button", name="Cancel").click()
    expect(question).to_be_hidden()
    assert project.api_keys.get(name="CI agents").revoked_at is None

    revoke.click()
    question.get_by_role("button", name="Revoke").click()
    expect(revoke).to_have_count(0)
    assert project.api_keys.get(name="CI agents").revoked_at is not None


def test_a_second_click_while_the_server_is_busy_creates_no_second_key(page_as, owner, project):
    page = page_as(owner)
    page.goto(reverse("settings_keys", args=[project.slug]))
    sent = []
    page.on("request", lambda request: request.method == "POST" and sent.append(request.url))
    page.get_by_label("Name").fill("CI agents")
    create = page.get_by_role("button", name="Create key")
    create.scroll_into_view_if_needed()
    box = create.bounding_box()
    center = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)  # the server waits for this row
        with page.expect_request(lambda request: request.method == "POST"):
            page.mouse.click(*center)
        page.mouse.click(*center)
    expect(page.get_by_text("API key CI agents created")).to_be_visible()
    assert len(sent) == project.api_keys.count() == 1


def test_each_field_of_the_project_page_has_its_own_label(page_as, owner, project):
    page = page_as(owner)
    page.goto(reverse("settings", args=[project.slug]))
    form = page.locator("form.panel").last
    form.get_by_text("Name").click()
    expect(form.get_by_role("textbox", name="Name")).to_be_focused()


def test_a_rejected_form_begins_at_its_first_error(page_as, owner, project, complaints):
    page = page_as(owner)
    page.set_viewport_size({"width": 390, "height": 300})
    page.goto(reverse("settings_webhooks", args=[project.slug]))
    page.get_by_label("URL").fill("http://hooks.example.com")
    page.get_by_role("button", name="Create webhook").click()
    expect(page.get_by_text("The URL must begin with https://")).to_be_in_viewport()
    expect(page.get_by_label("URL")).to_be_focused()
    expect(page.get_by_label("URL")).to_have_accessible_description(re.compile("must begin with https://"))
    complaints.clear()  # the browser reports the status 422


def test_the_actions_of_a_row_are_on_the_screen_at_every_width(page_as, owner, member, project, subtests):
    member.email = "a.member.with.a.long.name@example.com"
    member.save()
    scopes = ["read", "push", "admin"]
    api_key_create(project=project, name="CI agents", scopes=scopes, actor=Actor(user=owner))
    address = f"https://hooks.example.com/{'x' * 120}"
    hook = project.webhooks.create(url=address, secret="secret", events=list(WebhookEvent))
    hook.deliveries.create(
        event="budget.reached", body=b"{}", state="failed", attempts=8, error="no response"
    )
    page = page_as(owner)
    for width in (390, 720, 1024):
        page.set_viewport_size({"width": width, "height": 2_400})
        for name, actions in (
            ("settings_members", ("Change role", f"Remove {member.username}")),
            ("settings_keys", ("Revoke CI agents",)),
            ("settings_webhooks", ("Send test event", "Disable", "Delete", "Redeliver")),
        ):
            page.goto(reverse(name, args=[project.slug]))
            for action in actions:
                with subtests.test(action, width=width):
                    expect(page.get_by_role("button", name=action).last).to_be_in_viewport(ratio=1)
