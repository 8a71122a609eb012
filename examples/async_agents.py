"""Agents that work at the same time in one event loop: `async_agents.py FOLDER "task per line"`.

Each line of the task gets its own agent and session, with the asynchronous clients of Anthropic and
contextapp. Requires CONTEXTAPP_API_KEY and ANTHROPIC_API_KEY. CONTEXTAPP_URL (default
http://127.0.0.1:8000), ANTHROPIC_BASE_URL and ANTHROPIC_MODEL are optional. Commands run in FOLDER on this
machine.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from anthropic import AsyncAnthropic
from anthropic.types import ToolUseBlock
from contextapp_client import AsyncContextApp, AsyncSession, NewSession

from toolbox import Toolbox, arguments

SYSTEM = (
    "You are a careful software engineer. Work on the project in the current folder with your tools. Other "
    "agents work in the same folder on other tasks. Older tool outputs may be shortened to one line with a "
    "handle: retrieve what you need with expand_clip. Record decisions and next steps with "
    "update_working_memory. When the task is done, say so."
)


class Agents:
    """Agents with the same folder, model and tools. `budget` is in input tokens for each of them."""

    def __init__(self, app: AsyncContextApp, folder: Path, *, model: str, budget: int | None = None) -> None:
        self.app = app
        self.model = AsyncAnthropic(max_retries=4, timeout=120)
        self.name = model
        self.budget = budget
        self.toolbox = Toolbox(folder)
        self.served: set[str] = set()

    async def run(self, tasks: list[str]) -> list[str]:
        """Work on all tasks at the same time. Return the last message of each agent."""
        served = await self.app.tools("anthropic")
        self.served = {tool["name"] for tool in served}
        create = NewSession(
            model=self.name,
            agent="async-example",
            system=SYSTEM,
            tools=[*self.toolbox.definitions("anthropic"), *served],
        )
        if self.budget is not None:
            create["budget"] = {"input_tokens": self.budget}
        async with asyncio.TaskGroup() as group:
            work = [group.create_task(self.work(task, create)) for task in tasks]
        return [done.result() for done in work]

    async def work(self, task: str, create: NewSession, *, max_turns: int = 100) -> str:
        """Work on one task until the model calls no more tools."""
        session = await self.app.session(create={**create, "title": task[:80]})
        await session.push([{"role": "user", "content": task}])
        for _ in range(max_turns):
            prompt = await session.prompt()
            response = await self.model.messages.create(
                model=self.name, max_tokens=8_000, cache_control={"type": "ephemeral"}, **prompt.params
            )
            calls = [block for block in response.content if block.type == "tool_use"]
            results = await asyncio.gather(*(self.run_tool(session, call) for call in calls))
            tool_messages = [{"role": "user", "content": results}] if results else []
            pushed = await session.push([response, *tool_messages])
            names = ", ".join(call.name for call in calls) or "done"
            print(f"{task[:30]:<30} {pushed['turn']:>4}  {names}", flush=True)
            if not calls:
                return "".join(block.text for block in response.content if block.type == "text")
        return "The agent reached the maximum number of turns."

    async def run_tool(self, session: AsyncSession, call: ToolUseBlock) -> dict[str, object]:
        """Run a tool call: contextapp runs its own tools, the toolbox runs the others in a thread."""
        if call.name in self.served:
            result = await session.call_tool(call.name, call.input)
            text, is_error = result["content"], result["is_error"]
        else:
            text, is_error = await asyncio.to_thread(self.toolbox.run, call.name, call.input)
        return {"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": is_error}


async def main() -> None:
    folder, tasks = arguments(
        "Agents that work at the same time, one for each line of the task.",
        variables=["CONTEXTAPP_API_KEY", "ANTHROPIC_API_KEY"],
    )
    url = os.environ.get("CONTEXTAPP_URL", "http://127.0.0.1:8000")
    model = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-5-5")
    async with AsyncContextApp(url, os.environ["CONTEXTAPP_API_KEY"]) as app:
        for answer in await Agents(app, folder, model=model).run(tasks.splitlines()):
            print(answer)


if __name__ == "__main__":
    asyncio.run(main())
