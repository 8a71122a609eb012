"""URLs of the settings pages."""

from __future__ import annotations

from django.urls import path

from sessions.pages.settings import (
    audit,
    budgets,
    keys,
    members,
    memory,
    policy,
    prices,
    project,
    redaction,
    retention,
    webhooks,
)

_SETTINGS = "p/<slug:slug>/settings/"

urlpatterns = [
    path(_SETTINGS, project.project_settings, name="settings"),
    path(f"{_SETTINGS}new/", project.project_new, name="settings_new"),
    path(f"{_SETTINGS}members/", members.project_members, name="settings_members"),
    path(
        f"{_SETTINGS}invitations/<uuid:id>/revoke/",
        members.invitation_delete,
        name="settings_invitation_revoke",
    ),
    path(f"{_SETTINGS}members/<int:member>/", members.member_change, name="settings_member"),
    path(f"{_SETTINGS}members/<int:member>/remove/", members.member_delete, name="settings_member_remove"),
    path(f"{_SETTINGS}keys/", keys.project_keys, name="settings_keys"),
    path(f"{_SETTINGS}keys/<uuid:id>/revoke/", keys.key_revoke, name="settings_key_revoke"),
    path(f"{_SETTINGS}policy/", policy.project_policy, name="settings_policy"),
    path(f"{_SETTINGS}policy/preview/", policy.policy_preview, name="settings_policy_preview"),
    path(f"{_SETTINGS}webhooks/", webhooks.project_webhooks, name="settings_webhooks"),
    path(f"{_SETTINGS}webhooks/<uuid:id>/switch/", webhooks.webhook_switch, name="settings_webhook_switch"),
    path(f"{_SETTINGS}webhooks/<uuid:id>/test/", webhooks.webhook_test_send, name="settings_webhook_test"),
    path(f"{_SETTINGS}webhooks/<uuid:id>/delete/", webhooks.webhook_remove, name="settings_webhook_delete"),
    path(
        f"{_SETTINGS}webhooks/deliveries/<uuid:id>/redeliver/",
        webhooks.delivery_redeliver,
        name="settings_delivery_redeliver",
    ),
    path(f"{_SETTINGS}budgets/", budgets.project_budgets, name="settings_budgets"),
    path(f"{_SETTINGS}budgets/<int:number>/delete/", budgets.budget_remove, name="settings_budget_delete"),
    path(f"{_SETTINGS}prices/", prices.project_prices, name="settings_prices"),
    path(f"{_SETTINGS}prices/remove/", prices.project_price_remove, name="settings_price_remove"),
    path(f"{_SETTINGS}memory/", memory.project_memory, name="settings_memory"),
    path(f"{_SETTINGS}redaction/", redaction.project_redaction, name="settings_redaction"),
    path(f"{_SETTINGS}retention/", retention.project_retention, name="settings_retention"),
    path(f"{_SETTINGS}retention/off/", retention.retention_off, name="settings_retention_off"),
    path(f"{_SETTINGS}audit/", audit.project_audit, name="settings_audit"),
]
