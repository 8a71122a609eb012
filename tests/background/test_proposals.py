"""Automatic proposals with a real scheduler and worker."""

from __future__ import annotations

from tests.background.world import World, eventually


def test_items_of_a_model_are_proposed_when_idle_and_offered_when_accepted(
    world: World,
) -> None:
    fact = "always run pytest with -q"
    world.call("POST", "sessions/", {"id": "proposing", "agent": "prover"})
    body = {"decisions": [fact], "next": "nothing that others need"}
    status, _ = world.call("PATCH", "sessions/proposing/memory/?author=model", body, **{"If-Match": "*"})
    assert status == 200

    [proposed] = eventually(lambda: world.call("GET", "memory/facts/?agent=prover")[1]["data"])
    assert (proposed["text"], proposed["state"], proposed["seen_in"]) == (fact, "proposed", 1)
    assert world.call("POST", "sessions/", {"agent": "prover"})[1]["offers"] == 0

    world.call("PATCH", f"memory/facts/{proposed['id']}/", {"state": "accepted"})
    _, made = world.call("POST", "sessions/", {"agent": "prover"})
    assert made["offers"] == 1
    [offered] = world.call("GET", f"sessions/{made['id']}/memory/offers/")[1]["data"]
    assert offered["text"] == fact
