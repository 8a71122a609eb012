"""A coding agent with the Anthropic SDK and contextapp: `anthropic_agent.py FOLDER "task"`.

Requires CONTEXTAPP_API_KEY and ANTHROPIC_API_KEY. CONTEXTAPP_URL (default http://127.0.0.1:8000),
ANTHROPIC_BASE_URL and ANTHROPIC_MODEL are optional. Commands run in FOLDER on this machine.
"""

from __future__ import annotations

import os
from pathlib import Path

from anthropic import Anthropic
from anthropic.types import Message, ToolUseBlock
from contextapp_client import ContextApp, NewSession, Session
from contextapp_client.types import PushResult

from toolbox import Toolbox, arguments

SYSTEM = (
    "You are a careful software engineer. Work on the project in the current folder with your tools. Run the "
    "tests after each change. Older tool outputs may be shortened to one line with a handle: retrieve what "
    "you need with expand_clip. Record decisions, failed attempts and next steps with "
    "update_working_memory, so that they are not lost. When the task is done, say so."
)


class Agent:
    """An agent that works on a task in a folder.

    `budget` is in input tokens; None uses the default for the model's context window.
    """

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
            response = self.call_model()
            calls = [block for block in response.content if block.type == "tool_use"]
            results = [self.run_tool(call) for call in calls]
            # One turn: the model's response and the results of its tool calls.
            tool_messages = [{"role": "user", "content": results}] if results else []
            pushed = self.session.push([response, *tool_messages])
            print(summary(pushed, response), flush=True)
            if not calls:
                return

    def call_model(self) -> Message:
        """Call the model with the prompt from contextapp."""
        prompt = self.session.prompt()
        if not prompt.fits:
            print(f"  The prompt does not fit its budget: {prompt.reason}")
        response: Message = self.model.messages.create(
            model=self.name, max_tokens=8_000, cache_control={"type": "ephemeral"}, **prompt.params
        )
        return response

    def run_tool(self, call: ToolUseBlock) -> dict[str, object]:
        """Run a tool call: contextapp runs its own tools, the toolbox runs the others."""
        if call.name in self.served:
            result = self.session.call_tool(call.name, call.input)
            text, is_error = result["content"], result["is_error"]
        else:
            text, is_error = self.toolbox.run(call.name, call.input)
        return {"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": is_error}


def summary(pushed: PushResult, response: Message) -> str:
    """Summarize a turn in one line: actions, size of the prompt, compactions."""
    calls = [
        f"{block.name} {first_argument(block.input)}"
        for block in response.content
        if block.type == "tool_use"
    ]
    text = " ".join(block.text for block in response.content if block.type == "text")
    size = pushed["prompt"]
    actions = ", ".join(calls) or text
    fired = "".join(f"  << {fired['trigger']}: {fired['state']}" for fired in pushed["fired"])
    actions = actions if len(actions) <= 58 else f"{actions[:57]}…"
    return f"{pushed['turn']:>4}  {actions:<58} {size['tokens']:>7,} / {size['raw_tokens']:>7,} tokens{fired}"


def first_argument(arguments: object) -> str:
    """Return the first argument of a tool call, which is the most informative one."""
    values = list(arguments.values()) if isinstance(arguments, dict) else []
    return " ".join(str(values[0]).split()) if values else ""


def main() -> None:
    folder, task = arguments(
        "A coding agent with the Anthropic SDK.", variables=["CONTEXTAPP_API_KEY", "ANTHROPIC_API_KEY"]
    )
    url = os.environ.get("CONTEXTAPP_URL", "http://127.0.0.1:8000")
    app = ContextApp(url, os.environ["CONTEXTAPP_API_KEY"])
    model = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-5-5")
    Agent(app, folder, model=model).run(task)


if __name__ == "__main__":
    main()
