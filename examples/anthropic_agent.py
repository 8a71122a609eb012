"""A coding agent on the Anthropic SDK whose context contextapp keeps: `anthropic_agent.py FOLDER "task"`.

It needs CONTEXTAPP_API_KEY and ANTHROPIC_API_KEY; CONTEXTAPP_URL (else http://127.0.0.1:8000),
ANTHROPIC_BASE_URL and ANTHROPIC_MODEL are optional. Commands run in FOLDER on this machine.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from anthropic import Anthropic
from anthropic.types import Message, ToolUseBlock
from contextapp_client import ContextApp, NewSession, Session
from contextapp_client.types import PushResult

from toolbox import Toolbox

SYSTEM = (
    "You are a careful software engineer. You work on the project in the current folder with the tools that "
    "you have. Run the tests after each change. Older tool outputs may be shown as one line with a handle: "
    "bring back what you need with expand_clip. Keep what must not be lost in working memory with "
    "update_working_memory: decisions, what you tried, what is next. When the task is done, say so."
)


class Agent:
    """One task in one folder. `budget` is in input tokens; None leaves it to the model's window."""

    def __init__(self, app: ContextApp, folder: Path, *, model: str, budget: int | None = None) -> None:
        self.model = Anthropic(max_retries=4, timeout=120)
        self.name = model
        self.toolbox = Toolbox(folder)
        served = app.tools("anthropic")
        self.served = {tool["name"] for tool in served}
        create = NewSession(
            model=model,
            agent="anthropic-example",
            title=folder.resolve().name,
            format="anthropic",
            system=SYSTEM,
            tools=[*self.toolbox.definitions("anthropic"), *served],
        )
        if budget is not None:
            create["budget"] = {"input_tokens": budget}
        self.session: Session = app.session(create=create)

    def run(self, task: str, *, max_turns: int = 100) -> None:
        """Work on the task until the model calls no more tools."""
        self.session.push([{"role": "user", "content": task}])
        for _ in range(max_turns):
            response = self.think()
            calls = [block for block in response.content if block.type == "tool_use"]
            results = [self.answer(call) for call in calls]
            # A turn: what the model said, and what its tools answered.
            answers = [{"role": "user", "content": results}] if results else []
            pushed = self.session.push([response, *answers])
            print(line(pushed, response), flush=True)
            if not calls:
                return

    def think(self) -> Message:
        """The model's answer to the prompt that contextapp serves."""
        prompt = self.session.prompt()
        if not prompt.fits:
            print(f"  the prompt does not fit: {prompt.reason}")
        response: Message = self.model.messages.create(
            model=self.name, max_tokens=8_000, cache_control={"type": "ephemeral"}, **prompt.params
        )
        return response

    def answer(self, call: ToolUseBlock) -> dict[str, object]:
        """The result of a tool call: contextapp runs its own tools, the toolbox the others."""
        if call.name in self.served:
            told = self.session.call_tool(call.name, call.input)
            text, failed = told["content"], told["is_error"]
        else:
            text, failed = self.toolbox.run(call.name, call.input)
        return {"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": failed}


def line(pushed: PushResult, response: Message) -> str:
    """The turn in one line: what was done, how large the prompt is now, what was compacted."""
    calls = [f"{block.name} {first(block.input)}" for block in response.content if block.type == "tool_use"]
    said = " ".join(block.text for block in response.content if block.type == "text")
    size = pushed["prompt"]
    done = ", ".join(calls) or said
    fired = "".join(f"  << {fired['trigger']}: {fired['state']}" for fired in pushed["fired"])
    what = done if len(done) <= 58 else f"{done[:57]}…"
    return f"{pushed['turn']:>4}  {what:<58} {size['tokens']:>7,} / {size['raw_tokens']:>7,} tokens{fired}"


def first(arguments: object) -> str:
    """Return the first argument of a call, usually the most informative one."""
    values = list(arguments.values()) if isinstance(arguments, dict) else []
    return " ".join(str(values[0]).split()) if values else ""


def main() -> None:
    url = os.environ.get("CONTEXTAPP_URL", "http://127.0.0.1:8000")
    app = ContextApp(url, os.environ["CONTEXTAPP_API_KEY"])
    model = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-5-5")
    agent = Agent(app, Path(sys.argv[1]), model=model)
    agent.run(sys.argv[2])


if __name__ == "__main__":
    main()
