"""Run an instance under faults, then check what it stored.

    python -m bench.chaos --minutes 10 --agents 6 --seed 1

Starts an instance with agents that push turns, agents that call a provider through the gateway, and an
import: a minute without faults, then again while it kills and stops the parts of the instance and everything
at once, sets their clocks wrong, and fills the disk. Then it checks that every acknowledged turn and every
message that passed the gateway is stored once, unchanged and in its place, that no compaction is open, that
the prompts are valid, and that the memory has not grown. Exits with 1 if not. A full disk needs root, and
wrong clocks need a C compiler.
"""

from __future__ import annotations

import argparse
import sys
import time
from threading import Event, Thread

import orjson

from bench.chaos.audit import audit
from bench.chaos.faults import Faults
from bench.chaos.gateway_agents import GatewayAgent, gateway_audit
from bench.chaos.instance import Instance
from bench.chaos.provider import Provider
from bench.chaos.writers import Agent, Api

#: Messages of the log that is imported at the same time.
_LOG_MESSAGES = 20_000

#: Seconds without progress after which an import counts as unfinished.
_STALLED_SECONDS = 180

#: Seconds of load without faults before the run, which loads modules, opens connections and fills caches.
_WARM_UP_SECONDS = 60

#: Seconds in which the instance comes to rest before its memory is measured.
_REST_SECONDS = 30

#: Largest memory after the run, as a multiple of the memory after the warm-up.
_MEMORY_RATIO = 1.3


def main() -> int:
    parser = argparse.ArgumentParser(description="Check that an instance loses nothing under faults.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--agents", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if sys.platform != "linux":
        sys.exit("The faults need /proc, so they run on Linux only.")
    provider = Provider()
    instance = Instance(provider.url)
    try:
        if not instance.has_disk:
            print("Without root, no file system can be mounted: the full disk is skipped.")
        if not instance.clock.is_available:
            print("Without a C compiler, clocks cannot be set wrong: this fault is skipped.")
        instance.start()
        return run(instance, provider, options.minutes * 60, options.agents, options.seed)
    finally:
        instance.stop()


def run(instance: Instance, provider: Provider, seconds: float, agents: int, seed: int) -> int:
    api, faults, done = Api(instance.port, instance.key), Faults(instance, seed), Event()
    warm_up = Load(f"warm-up-{seed}", instance, provider, api, agents)
    warm_up.start()
    time.sleep(_WARM_UP_SECONDS)
    warm_up.finish()
    time.sleep(_REST_SECONDS)
    idle = instance.memory()
    load = Load(str(seed), instance, provider, api, agents)
    load.start()
    causing = Thread(target=faults.run, args=(done,), daemon=True)
    causing.start()
    time.sleep(seconds)
    done.set()
    causing.join()
    instance.wait_until_ready()
    load.finish()
    violations = load.violations()
    time.sleep(_REST_SECONDS)
    after = instance.memory()
    violations["memory"] = sum(after.values()) > _MEMORY_RATIO * sum(idle.values())
    report(load, faults, violations, idle=idle, after=after)
    return 1 if any(violations.values()) else 0


class Load:
    """Agents that push turns, agents that call a provider through the gateway, and an import."""

    def __init__(self, name: str, instance: Instance, provider: Provider, api: Api, agents: int) -> None:
        self._api, self._done, self._log, self._job = api, Event(), f"import-{name}", ""
        self._is_imported = False
        self.writers = [Agent(f"agent-{name}-{number}", api) for number in range(agents)]
        self.callers = [
            GatewayAgent(f"{name}-{number}", mode, instance.gateway_port, instance.key, provider)
            for number, mode in enumerate(("observe", "compact"))
        ]

    def agents(self) -> list[Agent | GatewayAgent]:
        return [*self.writers, *self.callers]

    def start(self) -> None:
        self._job = start_import(self._api, self._log, _LOG_MESSAGES)
        for agent in self.agents():
            agent.start(self._done)

    def finish(self) -> None:
        """Stop the agents and wait for the import."""
        self._done.set()
        for agent in self.agents():
            assert agent.thread is not None
            agent.thread.join(120)
        for caller in self.callers:
            caller.finish()
        self._is_imported = import_is_complete(self._api, self._job, self._log, _LOG_MESSAGES)

    def violations(self) -> dict[str, int]:
        """Count what is wrong in the stored data."""
        alive = [each for each in self.agents() if each.thread and each.thread.is_alive()]
        return {
            **audit(self._api, self.writers),
            **gateway_audit(self._api, self.callers),
            "writers that do not end": len(alive),
            "unfinished imports": not self._is_imported,
        }


def start_import(api: Api, name: str, count: int) -> str:
    """Upload a log of `count` messages and return the id of its import."""
    messages = [
        {"role": role, "content": f"{role} {number} " + "words " * 20}
        for number in range(count // 2)
        for role in ("user", "assistant")
    ]
    log = orjson.dumps({"id": name, "messages": messages})
    headers = {"Content-Type": "application/octet-stream"}
    status, body = api.call("POST", f"imports/?name={name}.json", log, **headers)
    if status not in {200, 202}:
        sys.exit(f"the import was not accepted: {status} {body[:300]!r}")
    id: str = orjson.loads(body)["id"]
    return id


def import_is_complete(api: Api, id: str, name: str, count: int) -> bool:
    """Wait for the import while it makes progress, and return whether every message is stored once."""
    stored, since = -1, time.monotonic()
    while (job := api.get(f"imports/{id}/"))["state"] in ("pending", "running"):
        if job["progress"]["messages"] != stored:
            stored, since = job["progress"]["messages"], time.monotonic()
        if time.monotonic() - since > _STALLED_SECONDS:
            break
        time.sleep(3)
    is_done: bool = job["state"] == "done"
    if not is_done:
        print(f"the import {name} is {job['state']}: {job['progress']}, {job['error']}")
    return is_done and api.get(f"sessions/{name}/")["messages"] == count


def report(
    load: Load, faults: Faults, violations: dict[str, int], *, idle: dict[str, int], after: dict[str, int]
) -> None:
    writers, callers = load.writers, load.callers
    turns = sum(len(writer.acknowledged) for writer in writers)
    attempts = sum(writer.attempts for writer in writers)
    print(f"\n{faults.counts.total()} faults, {turns:,} acknowledged turns, {attempts:,} requests")
    provider, answered = callers[0].provider, sum(caller.answered for caller in callers)
    print(
        f"{answered:,} answered gateway calls, {provider.calls:,} forwarded, {provider.compacted:,} compacted"
    )
    for caller in callers:
        handled = ", ".join(f"{text} {count:,}" for text, count in caller.handled.most_common())
        print(f"  {caller.mode}: {handled}")
    if faults.recoveries:
        print(f"ready after a kill of everything: at most {max(faults.recoveries):.0f} s")
    print(f"memory: {sum(idle.values())} MB before, {sum(after.values())} MB afterwards")
    print("  " + ", ".join(f"{part} {idle[part]} -> {after[part]}" for part in idle))
    for name, count in violations.items():
        print(f"  {'FAILED' if count else 'ok':<7} {name}: {int(count)}")
    for problem in provider.problems[:3]:
        print(f"  {problem}")
    for writer in load.agents():
        for problem in writer.problems[:3]:
            print(f"  {problem}")


if __name__ == "__main__":
    sys.exit(main())
