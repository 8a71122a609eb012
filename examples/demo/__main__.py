"""`make demo`: run the Anthropic example on a scratch project with a scripted model.

Works offline and produces the same session each time. Uses the contextapp running on CONTEXTAPP_PORT (default
8000) with the key in CONTEXTAPP_API_KEY or in the data folder, or starts one and keeps it running.
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
    """Run the story once. Return the agent with its session."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="parcelpost-") as scratch, ScriptedModel(story()) as model:
        folder = Path(scratch) / "parcelpost"
        make_project(folder)
        os.environ |= {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "not-needed"}
        agent = Agent(ContextApp(url, key), folder, model=MODEL, budget=BUDGET)
        print(f"turn  action{'':<51}  prompt / transcript")
        agent.run(TASK)
    info = agent.session.info()
    print(
        f"\n{info['turns']} turns in {time.monotonic() - started:.0f} s, {info['compactions']} compactions; "
        f"prompt: {info['prompt']['tokens']:,} of {info['prompt']['raw_tokens']:,} transcript tokens "
        f"(budget {info['prompt']['budget']:,}); cost at list prices: ${info['cost_microusd'] / 1e6:.3f}"
    )
    print(f"Session: {url}/p/default/sessions/{info['id']}/")
    return agent


if __name__ == "__main__":
    sys.exit(main())
