"""Find the requests of the user, apart from what agents insert into user messages.

Agents insert reminders, commands that the user ran in the client and their output, and notes about
interruptions and background tasks. Agents that call no tools write commands in their text, and send the
output as a user message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from compaction.entries import Entry
from compaction.messages import Message, Role, Text

_INSERTED = re.compile(
    r"\s*(?:<(system-reminder|local-command-\w+|task-notification|session_context)>.*?</\1>"
    r"(?:\s*Full transcript available at: \S+)?"
    # A command of the client without arguments, such as /exit.
    r"|<command-name>[^<]*</command-name>\s*<command-message>[^<]*</command-message>"
    r"\s*<command-args>\s*</command-args>)",
    re.DOTALL,
)
_INTERRUPTED = "[Request interrupted"
#: Beginnings of summaries with which agents continue a conversation that they compacted.
_CONTINUED = (
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem and produced a summary",
    "The conversation history before this point was compacted into the following summary",
)
#: The output of a command in an agent's text: the beginnings that agents use, and SWE-agent's shell prompt at
#: the end.
_OUTPUT = re.compile(
    r"\s*(?:OBSERVATION:|Observation:|<returncode>|<(?:tool_response|tool_result|function_results?|observation)>"
    r"|EXECUTION RESULT of \[|\[[\w-]+(?: for '[^'\n]*')?\] Result:)"
)
_SHELL_PROMPT = re.compile(r"\n\(Current directory: [^\n]*\)\s+(?:bash-)?\$\s*$")
_PROMPT_LENGTH = 600


def own_words(text: str) -> str:
    """Return a user's text without what an agent inserted before it, or "" if there is nothing else."""
    start = 0
    while found := _INSERTED.match(text, start):
        start = found.end()
    rest = text[start:] if start else text
    return "" if rest.isspace() or rest.lstrip().startswith(_INTERRUPTED) else rest


def is_output(text: str, turn: int) -> bool:
    """Whether a user's text is the output of a command in the agent's text. The first turn has none."""
    if not turn:
        return False
    return _OUTPUT.match(text) is not None or _SHELL_PROMPT.search(text[-_PROMPT_LENGTH:]) is not None


def is_interruption(text: str) -> bool:
    """Whether a user's text is the agent's note that the user interrupted it."""
    return text.lstrip().startswith(_INTERRUPTED)


def is_summary(text: str) -> bool:
    """Whether a user's text is the agent's summary of messages that it compacted."""
    return text.lstrip().startswith(_CONTINUED)


def latest_request(entries: Sequence[Entry]) -> int:
    """Return the position of the latest request that the entries show, or -1 if there is none.

    Text that the agent inserted only counts if no message contains a request of the user.
    """
    latest = -1
    for entry in reversed(entries):
        message = entry.message
        if message.role is not Role.USER or message.tool_results or entry.is_generated:
            continue
        if not is_inserted(message):
            return entry.first
        latest = max(latest, entry.first)
    return latest


def is_inserted(message: Message) -> bool:
    """Whether a user's message contains nothing of the user."""
    return all(isinstance(part, Text) and not own_words(part.text) for part in message.parts)
