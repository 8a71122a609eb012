"""The gateway settings of a project, and the provider keys that it may use for the project's agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from accounts.actors import SYSTEM, Actor
from accounts.encryption import cipher
from accounts.models import PROVIDER_SECRETS, Project
from accounts.services.audit import audit_record
from accounts.services.projects import project_update


def gateway_update(*, project: Project, changes: Mapping[str, Any], actor: Actor = SYSTEM) -> None:
    """Change gateway settings of a project: `mode`, `upstreams` by provider, `adds_usage`."""
    project_update(project=project, changes={"gateway": {**project.gateway, **changes}}, actor=actor)


@transaction.atomic
def provider_secret_set(*, project: Project, provider: str, secret: str, actor: Actor = SYSTEM) -> None:
    """Store the key of a provider, encrypted; an empty one removes it. The audit log does not contain it."""
    locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    secrets = {name: value for name, value in locked.provider_secrets.items() if name != provider}
    if secret:
        secrets[provider] = cipher(PROVIDER_SECRETS).encrypt(secret.encode()).decode()
    locked.provider_secrets = project.provider_secrets = secrets
    locked.save(update_fields=["provider_secrets"])
    action = "provider_key.set" if secret else "provider_key.removed"
    audit_record(action=action, project=locked, actor=actor, target=provider)
