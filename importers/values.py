"""Parse values that several log formats share: times, costs, titles, text content."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

import orjson

from compaction.messages import Usage
from compaction.text_cache import once_per_text
from pricing.usage import MAX_TOKENS

#: Words of the shortest message that states a task. Chinese and Japanese have no spaces between words.
_REQUEST_WORDS = 3
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]+")

#: A command to the client: a slash and a name without further slashes.
_COMMAND = re.compile(r"/[\w:-]+(?:\s|$)")

TITLE_LENGTH = 120
#: Characters that are searched for attachments before the title, and characters after these for the title.
_OPENING, _TITLE_SOURCE = 100_000, 4_000
_ATTACHED = re.compile(r"\A(?:\s*<([\w-]+)>.*?</\1>)+", re.DOTALL)
_TAG = re.compile(r"</?[\w-]+>")
_ANNOUNCES = re.compile(r"\bfollowing\b[^.]*:$", re.IGNORECASE)
_HEADING = re.compile(r"^#+ ")

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,")

#: Upper limit of a plausible latency.
_MAX_MS = 10**9

#: Maximum plausible cost of a call in micro-dollars.
MAX_MICROUSD = 10**12


def time_of(value: Any) -> datetime | None:
    """Return an aware time from ISO 8601 (default: UTC) or Unix time in seconds or milliseconds, or None."""
    try:
        if isinstance(value, str) and value:
            parsed = datetime.fromisoformat(value)
            # Near the limits of the calendar, converting the time zone would overflow.
            if not MINYEAR < parsed.year < MAXYEAR:
                return None
            return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        if isinstance(value, int | float) and value > 0:
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def id_of(value: Any) -> str | None:
    """Return an id as text, or None if it is missing or empty."""
    return str(value) if value else None


def microusd_of(dollars: Any) -> int | None:
    """Return dollars as micro-dollars, rounded half up, or None if the value is not a plausible cost."""
    if isinstance(dollars, bool) or not isinstance(dollars, int | float | str | Decimal):
        return None
    try:
        amount = Decimal(str(dollars)) * 1_000_000
        micro = int(amount.quantize(Decimal(1), rounding=ROUND_HALF_UP))
    except (InvalidOperation, ValueError, OverflowError):
        return None
    return micro if 0 <= micro <= MAX_MICROUSD else None


def title_of(text: str) -> str:
    """Return the first meaningful line of a text, at most `TITLE_LENGTH` characters.

    Skips attachments in tags, and an introduction such as "Implement the following plan:".
    """
    opening = text[:_OPENING].replace("\x00", "")
    lines = _lines(_ATTACHED.sub("", opening)[:_TITLE_SOURCE]) or _lines(opening[:_TITLE_SOURCE])
    if len(lines) > 1 and _ANNOUNCES.search(lines[0]):
        lines = lines[1:]
    title = _HEADING.sub("", lines[0]) if lines else ""
    return title if len(title) <= TITLE_LENGTH else title[: TITLE_LENGTH - 1].rstrip() + "…"


def request_of(known: str, text: str) -> str:
    """Return the message that states the task: `known`, unless only `text` does.

    A command such as `/mode`, a greeting or one word says nothing about a session.
    """
    return text if not known or (not is_request(known) and is_request(text)) else known


@once_per_text(1 << 10)  # `request_of` asks about the known one again for each message
def is_request(text: str) -> bool:
    """Return whether a message of the user can state the task of a session."""
    title = title_of(text)
    return len(_WORD.findall(title)) >= _REQUEST_WORDS and not _COMMAND.match(title)


def _lines(text: str) -> list[str]:
    """Return the non-blank lines with collapsed whitespace; lone tags only if there is nothing else."""
    lines = [words for line in text.splitlines() if (words := " ".join(line.split()))]
    return [line for line in lines if not _TAG.fullmatch(line)] or lines


def text_of(content: Any) -> str:
    """Return the text of a message's content: the string, or its text parts joined by newlines."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))


def tokens_of(usage: Mapping[str, Any], *keys: str) -> int:
    """Return the first of the fields that has a plausible count, or 0."""
    counts = (count_of(usage.get(key), MAX_TOKENS) for key in keys)
    return next((count for count in counts if count is not None), 0)


def disjoint_usage(*, uncached: int, read: int, write: int, output: int) -> Usage | None:
    """Return the usage with these parts, None without a prompt."""
    found = Usage(
        uncached_tokens=uncached, cache_read_tokens=read, cache_write_tokens=write, output_tokens=output
    )
    return found if found.prompt_tokens else None


def usage_of(*, prompt: int, cached: int, output: int) -> Usage | None:
    """Return the usage in disjoint parts, None without a prompt. `prompt` includes `cached`."""
    read = min(cached, prompt)
    return disjoint_usage(uncached=prompt - read, read=read, write=0, output=output)


def usage_in_parts(*, prompt: int, read: int, write: int, output: int) -> Usage | None:
    """Return the usage in disjoint parts, None without a prompt.

    `prompt` includes the tokens that were read from and written to the cache, unless these are more.
    """
    uncached = prompt if read + write > prompt else prompt - read - write
    return disjoint_usage(uncached=uncached, read=read, write=write, output=output)


def usage_with_cache(usage: Mapping[str, Any]) -> Usage | None:
    """Return the usage in disjoint parts, None without a prompt."""
    return usage_in_parts(
        prompt=tokens_of(usage, "inputTokens"),
        read=tokens_of(usage, "cacheReadTokens"),
        write=tokens_of(usage, "cacheWriteTokens"),
        output=tokens_of(usage, "outputTokens"),
    )


def milliseconds_of(value: Any, *, unit: int = 1) -> int | None:
    """Return a latency in units of `unit` milliseconds as milliseconds, None if it is not plausible."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return round(value * unit) if is_number and 0 <= value * unit < _MAX_MS else None


def arguments_of(value: Any) -> dict[str, Any]:
    """Return the arguments of a tool call as an object. Others become its field `input`."""
    if isinstance(value, Mapping):
        return dict(value)
    return {"input": value} if value else {}


def embedded_file(url: str) -> tuple[str, str] | None:
    """Return the media type and the Base64 data of a data URL, or None for another one."""
    match = _DATA_URL.match(url)
    return (match[1], url[match.end() :]) if match else None


def decoded_text(data: Any) -> str:
    """Return the text in Base64, "" if it is damaged."""
    try:
        return base64.b64decode(str(data)).decode("utf-8", "replace")
    except ValueError:
        return ""


def json_text(value: Any) -> str:
    """Return a text unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def count_of(value: Any, most: int) -> int | None:
    """Return the value if it is a whole number from 0 to `most`, else None."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
    return value if is_count else None


def list_of(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def mapping_of(value: Any) -> Mapping[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}
