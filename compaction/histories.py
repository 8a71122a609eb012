"""Compare the history that a client sends with the stored one to find new and rewritten messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from compaction.dialects import parse_message
from compaction.identity import REASONING, beginning_hashes, canonical
from compaction.messages import JSON, Message
from compaction.prefixes import common_length
from compaction.provider_summary import COMPACTION, begins_with_summary
from compaction.user_requests import CONTINUED


class Change(StrEnum):
    """The relation of a client's history to the stored one."""

    EXTENDED = "extended"  #: begins with all of it
    EDITED = "edited"  #: begins with all of it, but some messages have different content
    OMITTED = "omitted"  #: begins with all of it except the reasoning
    REPLACED = "replaced"  #: dropped what it had sent last, before the answer: it belonged to that call only
    DISCARDED = "discarded"  #: dropped the last answer and added to the question
    TRIMMED = "trimmed"  #: the client dropped messages after its system prompt
    COMPACTED = "compacted"  #: the client replaced messages with a summary
    REWRITTEN = "rewritten"  #: replaced any messages, but not the last question and its answer
    SIDE = "side"  #: a side request outside the conversation, for example for a title
    DIVERGED = "diverged"  #: continues from an earlier point


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`common` messages at the beginning are equal. From `new` on, messages are not stored yet.

    `kept` is the index of the first stored message that follows the dropped ones (REPLACED, DISCARDED and
    TRIMMED only).
    """

    change: Change
    common: int
    new: int
    kept: int = 0


#: Side requests have at most this many messages.
_SIDE_MESSAGES = 4

#: Maximum number of messages that a client adds to a single request only.
ONCE_MAX = 3

#: Minimum size, in bytes, of an answer that identifies a session although other messages before it differ. A
#: tool call has at least an id, a name and arguments.
_DISTINCTIVE = 60

#: The id of a tool call if the model numbers its calls, for example `functions.bash:0`. Other conversations
#: have the same ids.
_NUMBERED = re.compile(r"(?:(?:.*[^0-9A-Za-z])?\d{1,4})?", re.DOTALL)

#: A history is trimmed if it still contains at least this many of the last messages.
_KEPT_MIN = 2

#: Beginnings of the message with which clients replace compacted messages. It is near the start.
_SUMMARIES = (
    *CONTINUED,
    "Here is a summary of the conversation so far",
    "<state_snapshot>",
    "<summary>",
)
_SUMMARY_WITHIN = 3

#: Beginnings of the prompts with which clients request a summary or make other side requests.
_SIDE_PROMPTS = (
    "Your task is to create a detailed summary of the conversation so far",
    "You are performing a CONTEXT CHECKPOINT COMPACTION",
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.",
    "[SUGGESTION MODE:",
)


def compare(
    stored: Sequence[bytes],
    sent: Sequence[bytes],
    messages: Sequence[JSON],
    *,
    answers: int = 0,
    is_compacted: bool = False,
) -> Comparison:
    """Compare by hash. `messages` are the last sent messages, including at least those that are not stored.

    The last `answers` of them are the response to the request: another question may have the same answer, so
    they do not indicate a rewritten history. `is_compacted` is set if the client declares that it has
    compacted its context.
    """
    common = common_length(stored, sent)
    if common == len(stored):
        return Comparison(change=Change.EXTENDED, common=common, new=common)
    first = len(sent) - len(messages)
    following = messages[max(common - first, 0) :]
    if is_compacted or any(map(is_summary, following[:_SUMMARY_WITHIN])):
        return Comparison(change=Change.COMPACTED, common=common, new=common)
    spoken = [each for each in stored if each != REASONING]
    if len(spoken) < len(stored) and common_length(spoken, sent) == len(spoken):
        return Comparison(change=Change.OMITTED, common=len(spoken), new=len(spoken))
    asked = sent[: len(sent) - answers]
    if _is_edited(stored, asked, common):
        return Comparison(change=Change.EDITED, common=common, new=len(stored))
    if dropped := _dropped(stored, asked, common, following):
        change, kept = dropped
        return Comparison(change=change, common=common, new=common + len(stored) - kept, kept=kept)
    if any(map(is_provider_summary, following[:_SUMMARY_WITHIN])):
        return Comparison(change=Change.COMPACTED, common=common, new=common)
    if common <= leading_system(messages) and len(sent) - common <= _SIDE_MESSAGES < len(stored):
        return Comparison(change=Change.SIDE, common=common, new=common)
    while common > max(first, 0) and stored[common - 1] == REASONING:
        common -= 1  # reasoning belongs to the response that follows it, which differs here
    return Comparison(change=Change.DIVERGED, common=common, new=common)


def is_side_prompt(message: JSON) -> bool:
    """Return whether a message is a side request outside the conversation, for example for a summary."""
    return any(prompt in text[:2_000] for text in _texts(message) for prompt in _SIDE_PROMPTS)


def is_summary(message: JSON) -> bool:
    """Return whether a message is a client's summary of messages that it compacted."""
    return any(text.lstrip().startswith(_SUMMARIES) for text in _texts(message))


def is_provider_summary(message: JSON) -> bool:
    """Return whether a message begins with a summary that the provider wrote: a block or an item."""
    return isinstance(message, Mapping) and (
        message.get("type") == COMPACTION or begins_with_summary(message)
    )


def _is_edited(stored: Sequence[bytes], sent: Sequence[bytes], common: int) -> bool:
    """Return whether the client changed a few messages in place: the last one and most others are equal."""
    if len(sent) < len(stored) or sent[len(stored) - 1] != stored[-1]:
        return False
    equal = sum(old == new for old, new in zip(stored[common:], sent[common:], strict=False))
    return equal * 2 >= len(stored) - common


def _dropped(
    stored: Sequence[bytes], sent: Sequence[bytes], common: int, following: Sequence[JSON]
) -> tuple[Change, int] | None:
    """Return how the client dropped stored messages, and the first that it kept after them, or None.

    Some clients add messages to a request that they do not keep, such as the time. These are the last ones
    before its answer. `following` are the messages sent after the common ones.
    """
    for start in _kept(stored, sent, common, common + ONCE_MAX):
        if all(map(is_answer, following[: len(stored) - start])):
            return Change.REPLACED, start
    for start in _kept(stored, sent, common, len(stored) - _KEPT_MIN):
        return Change.TRIMMED, start
    return None


def _kept(stored: Sequence[bytes], sent: Sequence[bytes], common: int, last: int) -> Iterator[int]:
    """Yield each index up to `last` from which on the stored messages continue the common ones as sent."""
    for start in range(common + 1, min(last + 1, len(stored)) if common < len(sent) else 0):
        end = common + len(stored) - start
        if stored[start] == sent[common] and list(stored[start:]) == list(sent[common:end]):
            yield start


def discards_answer(
    stored: Sequence[bytes], common: int, messages: Sequence[JSON], *, stored_answers: int, key: bytes
) -> bool:
    """Return whether a client that diverged has dropped exactly the last answer and added to its question.

    Agents do so if they cannot use an answer, for example because it has no tool call: they send a message
    about the error instead, which some SDKs merge with the question. Without it, the client wants another
    answer to the same question, which is a fork. The model wrote the last `stored_answers` of the stored
    messages. `messages` are those sent after the `common` ones without the answer, and `key` is that of the
    hashes.
    """
    if not stored_answers or not messages or is_answer(messages[0]):
        return False
    question = len(stored) - stored_answers - 1
    if common == question:
        return stored[common] in beginning_hashes(messages[0], key=key, after=common)
    return 0 < common == question + 1


def keeps_last_exchange(
    stored: Sequence[bytes],
    sent: Sequence[bytes],
    common: int,
    messages: Sequence[JSON],
    *,
    stored_answers: int,
) -> bool:
    """Return whether a client that diverged still sends the last question with its answer.

    It has then rewritten the messages before them, and not gone back to an earlier point. A short answer does
    not count. Between the two, messages may be missing that the client added to a single request. An answer
    with tool calls needs no question, because their ids are unique, unless the model numbers them. `messages`
    are those sent after the `common` ones without the answer, and `sent` are their hashes.
    """
    end = len(stored) - stored_answers
    answers = [each for each in stored[end:] if each != REASONING]
    questions = stored[max(end - 1 - ONCE_MAX, common) : end]
    said = [message for each, message in zip(sent, messages, strict=True) if each != REASONING]
    hashes = [each for each in sent if each != REASONING]
    for start in range(len(hashes) - len(answers) + 1 if answers else 0):
        found = said[start : start + len(answers)]
        if hashes[start : start + len(answers)] != answers or not is_distinctive(found):
            continue
        asks = start > 0 and hashes[start - 1] in questions and not is_answer(said[start - 1])
        if asks or _has_unique_ids(found):
            return True
    return False


def _has_unique_ids(messages: Sequence[JSON]) -> bool:
    calls = (call for message in _parsed(messages) for call in message.tool_calls)
    return any(not _NUMBERED.fullmatch(call.call_id) for call in calls)


def has_calls(messages: Sequence[JSON]) -> bool:
    """Return whether any of the messages has tool calls or results."""
    return any(message.tool_calls or message.tool_results for message in _parsed(messages))


def _parsed(messages: Sequence[JSON]) -> list[Message]:
    return [parse_message(message, default=None, position=0, turn=0) for message in messages]


def is_distinctive(answers: Sequence[JSON]) -> bool:
    """Return whether no other conversation is likely to have the same answer."""
    return sum(len(canonical(message)) for message in answers) >= _DISTINCTIVE


def is_answer(message: JSON) -> bool:
    """Return whether the model wrote a message."""
    if not isinstance(message, Mapping):
        return False
    kind = message.get("type")
    is_item = isinstance(kind, str) and (kind == "reasoning" or kind.endswith("_call"))
    return message.get("role") in ("assistant", "model") or is_item


def last_answer_end(messages: Sequence[JSON]) -> int:
    """Return the index after the last answer, 0 if there is none."""
    return next((at for at in range(len(messages), 0, -1) if is_answer(messages[at - 1])), 0)


def leading_system(messages: Sequence[JSON]) -> int:
    """Return the number of system messages at the beginning."""
    roles = [message.get("role") if isinstance(message, Mapping) else None for message in messages]
    return next((i for i, role in enumerate(roles) if role not in {"system", "developer"}), len(roles))


def _texts(message: JSON) -> list[str]:
    """Return the text of a user message, block by block."""
    if not isinstance(message, Mapping) or message.get("role") != "user":
        return []
    content = message.get("content", message.get("parts"))
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [
        block["text"] for block in blocks if isinstance(block, Mapping) and isinstance(block.get("text"), str)
    ]
