"""Facts that were stored before they counted their sessions, and what the migration makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import pytest

from accounts.models import Project
from sessions.memory.sameness import digest_of
from sessions.models import FactSighting, SharedFact
from tests.migrating import APP, migrate, migrated

BEFORE, AFTER = "0017_no_price_overrides", "0018_memory_proposals"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def before() -> Iterator[Any]:
    with migrated(BEFORE) as models:
        yield models


def test_facts_of_before_are_told_apart_as_new_ones_are(before: Any, project: Project) -> None:
    session = before.get_model(APP, "AgentSession").objects.create(
        project_id=project.pk, external_id="s", format="openai"
    )
    for text in ("Run pytest -q.", "run pytest -q", "no clock"):
        digest = blake2b(" ".join(text.lower().split()).encode(), digest_size=16).digest()
        before.get_model(APP, "SharedFact").objects.create(
            project_id=project.pk, field="decisions", text=text, digest=digest, session=session, revision=3
        )
    migrate(AFTER)
    facts = {fact.text: fact for fact in SharedFact.objects.all()}
    assert {text: bytes(fact.said) for text, fact in facts.items()} == {
        text: digest_of(text) for text in facts
    }
    assert bytes(facts["no clock"].digest) == digest_of("no clock")
    assert all((fact.seen_in, fact.seen_at) == (1, fact.confirmed_at) for fact in facts.values())
    assert sorted(FactSighting.objects.values_list("fact__text", "revision")) == sorted(
        (text, 3) for text in facts
    )
