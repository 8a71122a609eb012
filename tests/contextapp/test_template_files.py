"""Pages are sent without the indentation of their templates."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Project
from tests.pages.transcripts import make_session, reading_turn

pytestmark = pytest.mark.django_db


def test_only_the_texts_of_a_page_are_indented(member_client: Client, project: Project) -> None:
    session = make_session(project, [reading_turn(n, "first line\n    indented line\n") for n in range(2)])
    page = member_client.get(reverse("session", args=[project.slug, session.pk]), {"view": "text"}).text
    assert "    indented line" in page
    assert re.findall(r"^[ \t]+<(?!span).*", page, re.MULTILINE) == []
