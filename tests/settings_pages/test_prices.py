"""Custom prices apply to pushes on their days, but not to stored turns."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import connection
from django.urls import reverse

from accounts.services.api_keys import api_key_create
from accounts.services.projects import project_update
from compaction.messages import Usage
from pricing.custom import CustomPrice, custom_cost
from sessions.models import Turn
from sessions.selectors.custom_prices import custom_prices
from sessions.services.spending.custom_prices import MAX_PRICES
from sessions.services.spending.rollups import rollups_fill
from tests.api.client import Api
from tests.trends.turns import session_make, turn_make, turns_add

pytestmark = pytest.mark.django_db

FORM = {
    "model": "Acme-7B",
    "first": "2026-01-01",
    "last": "",
    "uncached": "2",
    "cache_read": "0.2",
    "cache_write": "2.5",
    "output": "10.5",
}
USAGE = Usage(uncached_tokens=1_000, cache_read_tokens=10_000, cache_write_tokens=2_000, output_tokens=100)

REMOVE = "settings_price_remove"


def address(name: str = "settings_prices", *args: object) -> str:
    return reverse(name, args=["alpha", *args])


def price(first: str, last: str | None, uncached: int = 1_000_000) -> CustomPrice:
    return CustomPrice(
        model="m",
        first=date.fromisoformat(first),
        last=date.fromisoformat(last) if last else None,
        uncached=uncached,
        cache_read=0,
        cache_write=0,
        output=0,
    )


def test_the_newest_price_in_effect_applies(project):
    both = [price("2026-01-01", None, 1_000_000), price("2026-03-01", "2026-03-31", 2_000_000)]
    project_update(project=project, changes={"custom_prices": [one.to_json() for one in both]})
    prices = custom_prices(project)
    usage = Usage(uncached_tokens=1_000)
    days = {"2025-12-31": None, "2026-02-28": 1_000, "2026-03-31": 2_000, "2026-04-01": 1_000}
    for day, cost in days.items():
        assert custom_cost(prices, "M ", usage, date.fromisoformat(day)) == cost
    assert custom_cost(prices, "other", usage, date(2026, 3, 1)) is None


def test_costs_are_rounded_half_up():
    one = price("2026-01-01", None, uncached=500_000)
    assert [one.cost(Usage(uncached_tokens=tokens)) for tokens in (0, 1, 2, 3)] == [0, 1, 1, 2]


def push(api: Api, session: str, model: str) -> int | None:
    usage = {
        "input_tokens": USAGE.uncached_tokens,
        "cache_read_input_tokens": USAGE.cache_read_tokens,
        "cache_creation_input_tokens": USAGE.cache_write_tokens,
        "output_tokens": USAGE.output_tokens,
    }
    body = {"messages": [{"role": "assistant", "content": "ok"}], "usage": usage, "model": model}
    assert api.post(f"sessions/{session}/turns/", body).status_code == 201
    return Turn.objects.get(session__external_id=session).cost_microusd


def test_pushes_use_the_custom_price_of_their_model(project, owner_client):
    assert owner_client.post(address(), FORM).status_code == 302
    api = Api(api_key_create(project=project, name="k")[1])
    for name in ("a", "b"):
        api.post("sessions/", {"id": name})
    assert push(api, "a", "acme-7b") == 2_000 + 2_000 + 5_000 + 1_050
    assert push(api, "b", "nobody-knows") is None


def test_an_expired_price_does_not_apply(project, owner_client):
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date()
    owner_client.post(address(), {**FORM, "last": str(yesterday)})
    api = Api(api_key_create(project=project, name="k")[1])
    api.post("sessions/", {"id": "a"})
    assert push(api, "a", "acme-7b") is None


@pytest.mark.slow
def test_owners_change_and_remove_prices(project, owner_client, member_client):
    owner_client.post(address(), FORM)
    owner_client.post(address(), {**FORM, "uncached": "3"})
    project.refresh_from_db()
    assert [one["uncached"] for one in project.custom_prices] == [3_000_000]
    assert b"acme-7b" in member_client.get(address()).content
    known = {"model": "acme-7b", "first": FORM["first"]}
    page = owner_client.get(address()).content.decode()
    assert f'value="{known["model"]}"' in page
    assert "Remove this price?" in page
    owner_client.post(address(), {**FORM, "first": "2026-02-01"})
    assert owner_client.post(address(REMOVE), known).status_code == 302
    assert owner_client.post(address(REMOVE), known).status_code == 404
    project.refresh_from_db()
    assert [one["first"] for one in project.custom_prices] == ["2026-02-01"]


@pytest.mark.parametrize("wrong", [{"model": ""}, {"model": "other"}, {"first": "soon"}, {"first": ""}])
def test_removing_an_unknown_price_is_404(wrong, project, owner_client):
    owner_client.post(address(), FORM)
    known = {"model": "acme-7b", "first": FORM["first"], **wrong}
    assert owner_client.post(address(REMOVE), known).status_code == 404
    project.refresh_from_db()
    assert len(project.custom_prices) == 1


def test_a_full_price_list_can_still_be_changed(project, owner_client):
    full = [price(f"2026-01-{day:02}", None) for day in range(1, 26)]
    full += [price(f"2026-02-{day:02}", None) for day in range(1, 26)]
    project_update(project=project, changes={"custom_prices": [one.to_json() for one in full]})
    assert len(full) == MAX_PRICES
    assert owner_client.post(address(), FORM).status_code == 422
    assert owner_client.post(address(), {**FORM, "model": "m"}).status_code == 302


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_concurrent_changes_lose_no_price(project, owner, logged_in):
    for number in range(8):
        logged_in(owner).post(address(), {**FORM, "model": f"old-{number}"})

    def act(number: int) -> int:
        try:
            client, name = logged_in(owner), f"{number // 2}"
            if number % 2:
                return client.post(address(), {**FORM, "model": f"new-{name}"}).status_code
            return client.post(address(REMOVE), {"model": f"old-{name}", "first": "2026-01-01"}).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(act, range(16))) == {302}
    project.refresh_from_db()
    assert {one["model"] for one in project.custom_prices} == {f"new-{number}" for number in range(8)}


@pytest.mark.parametrize(
    "wrong", [{"model": ""}, {"uncached": "-1"}, {"output": "x"}, {"last": "2025-01-01"}, {"first": "soon"}]
)
def test_invalid_prices_are_rejected(wrong, project, owner_client):
    assert owner_client.post(address(), {**FORM, **wrong}).status_code == 422
    project.refresh_from_db()
    assert project.custom_prices == []


def test_models_without_a_price_are_listed_with_their_calls(project, viewer_client, owner_client):
    now = datetime.now(UTC)
    session = session_make(project, "fix")
    days = [(0, "acme-7b"), (1, "acme-7b"), (2, "acme-8b"), (40, "acme-6b")]
    calls = [
        turn_make(session, number, now - timedelta(days=age), cost=None, model=model)
        for number, (age, model) in enumerate(days)
    ]
    turns_add(session, [*calls, turn_make(session, 4, now, cost=1_000, model="gpt-5")])
    rollups_fill()
    response = viewer_client.get(address())
    assert response.context["unpriced"] == [("acme-7b", 2), ("acme-8b", 1)]
    assert "Models without a price" in response.text
    assert "Add a price" not in response.text
    assert "?model=acme-7b#add-price" in owner_client.get(address()).text
    assert 'value="acme-7b"' in owner_client.get(address(), {"model": "acme-7b"}).text
    priced = replace(price("2026-01-01", None), model="acme-7b")
    project_update(project=project, changes={"custom_prices": [priced.to_json()]})
    assert viewer_client.get(address()).context["unpriced"] == [("acme-8b", 1)]
    assert f'href="{address()}"' in viewer_client.get(reverse("trends", args=["alpha"])).text


def test_without_unpriced_calls_no_models_are_listed(project, viewer_client):
    assert "Models without a price" not in viewer_client.get(address()).text
