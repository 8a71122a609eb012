"""`make demo`: the Anthropic example on a scratch project, with a model that plays a script.

Offline and the same at every run. Uses the contextapp that answers on CONTEXTAPP_PORT (else 8000), with the
key in CONTEXTAPP_API_KEY or in the data folder; where none answers it starts one, and leaves it running.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from contextapp_client import ContextApp

from anthropic_agent import Agent
from demo.generate import make_project
from demo.instance import DemoError, instance
from demo.story import TASK, story
from scripted_model import ScriptedModel

MODEL = "claude-sonnet-5-5"
BUDGET = 16_000  #: input tokens; small, so that the session compacts several times


def main() -> int:
    try:
        with instance() as (url, key):
            play(url, key)
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print()
    return 0


def play(url: str, key: str) -> Agent:
    """One run of the story; its agent with the session that it filled."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="parcelpost-") as scratch, ScriptedModel(story()) as model:
        folder = Path(scratch) / "parcelpost"
        make_project(folder)
        os.environ |= {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none-is-needed"}
        agent = Agent(ContextApp(url, key), folder, model=MODEL, budget=BUDGET)
        print(f"turn  what the agent did{'':<43} prompt /    whole transcript")
        agent.run(TASK)
    info = agent.session.info()
    print(
        f"\n{info['turns']} turns in {time.monotonic() - started:.0f} s, {info['compactions']} compactions; "
        f"{info['prompt']['raw_tokens']:,} tokens of transcript in a prompt of {info['prompt']['tokens']:,} "
        f"(budget {info['prompt']['budget']:,}); ${info['cost_microusd'] / 1e6:.3f} at the model's prices"
    )
    print(f"The session: {url}/p/default/sessions/{info['id']}/")
    return agent


if __name__ == "__main__":
    sys.exit(main())
