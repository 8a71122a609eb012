"""The user's task: the first request, or the latest message that replaced it.

A message replaces the task if it states that explicitly ("forget that, …", "new task: …"), or if the
assistant had finished and the message requests other work, or describes it at length. Answers, questions and
corrections belong to the task.
"""

from __future__ import annotations

import re

from compaction.memory.updates import task_words
from compaction.shortening import shortened

#: Maximum characters of a task.
_LONGEST = 240
#: Longer messages are pasted data unless they are the first one (characters).
_LONGEST_REQUEST = 8_000
#: Minimum number of words of a message that requests other work.
_MIN_WORDS = 4
#: The same for one that describes other work without requesting it, such as a bug report, and for its first
#: sentence. Shorter ones are titles, or introduce an output.
_REPORT_WORDS, _REPORT_SENTENCE_WORDS = 40, 6

_OPENING_TAG = re.compile(r"<([\w-]+)(?:\s[^<>]*)?>")
_CLOSING_TAG = re.compile(r"</([\w-]+)>")
_TAG = re.compile(r"</?[\w-]+(?:\s[^<>]*)?>")
_FENCED = re.compile(r"^[ \t]*```[^\n]*\n.*?(?:^[ \t]*```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
#: Maximum number of lines of a task: those that end with a colon, and the one after them.
_MOST_LINES = 4
#: Phrases that may precede the significant words.
_COURTESY = (
    r"(?:(?:ok(?:ay)?|alright|all right|great|perfect|good|nice|cool|thanks|thank you|thx|excellent|awesome"
    r"|hey|hi|hello|no|actually|hmm+|wait|sorry|and|so|well|lgtm|looks good|sounds good)\b[\s,.!:;–—-]*)*"
)
_POLITE = (
    r"(?:(?:now|next|then|also|finally|please|let'?s|let us|(?:can|could|would|will) you|(?:can|could) we"
    r"|we should|first|just|maybe"
    r"|i want(?: you)? to|i'd like(?: you)? to|i need(?: you)? to|i think|i guess|we need to|you should"
    r"|go ahead and|help me(?: to)?)\s*,?\s+)*"
)
_WORK = (
    r"add|analyse|analyze|build|bump|change|clean|configure|convert|create|debug|delete|deploy|design|develop"
    r"|document|draft|enable|extend|extract|find|fix|generate|implement|improve|install|integrate|introduce"
    r"|investigate|make(?! (?:sure|certain|an exception)\b)|migrate|move|optimise|optimize|plan|port|prepare"
    r"|publish|refactor|release|remove|rename|replace|research|resolve|review|rewrite|set up|setup|simplify"
    r"|solve|split|support|translate|turn|update|upgrade|write"
)
_PIVOT = re.compile(
    rf"{_COURTESY}{_POLITE}(?:"
    r"(?:forget|drop|scrap|abandon)\s+(?:about\s+)?(?:that|this|it)\b(?!\s+(?:part|line|file|test|error|warning)\b)"
    r"|(?:forget|scrap|abandon)\s+(?:about\s+)?(?:the|what)\b"
    r"|(?:forget|drop|scrap|abandon|ignore)\s+(?:about\s+)?(?:all|everything)\b"
    r"|never\s?mind\b|(?:there is a |there's a )?change of plans?\b"
    r"|(?:here is |here's )?(?:a |your |the )?(?:new|next|another|different) (?:task|goal|job|topic)\b"
    r"|(?:switch|move on|pivot|turn) to\b|on to the next\b"
    r"|stop\s+(?:that|this|it|working)\b"
    r"|(?:the )?(?:task|goal|plan|priority) (?:has )?changed\b)",
    re.IGNORECASE,
)
#: References to the current work, such as "this" or "3", and messages that begin with "yes".
_REQUEST = re.compile(
    rf"{_COURTESY}{_POLITE}(?:{_WORK})\s+(?!(?:this|that|it|these|those|them|both|all|\d+)\b)\w",
    re.IGNORECASE,
)
#: The beginning of an answer or a correction, which belongs to the task whatever it requests.
_ANSWER = re.compile(
    r"\s*(?:yes|yep|yeah|no|nope|wrong|still|that(?:'s| is| was)|it(?:'s| is| was| still| does)|you"
    r"|(?:please )?(?:continue|proceed|go on|keep going))\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(rf"{_COURTESY}(?:question|how|what|when|where|which|who|why)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|(?<=[。！？：])")
#: Characters of Chinese and Japanese, which have no spaces between words.
_CHARACTER = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")


def task_of(text: str) -> str:
    """Return the first meaningful line of a request, or "" if there is none.

    A line that ends with a colon is followed by what it introduces. Elements and code that no line introduces
    are left out, unless there is nothing else.
    """
    for shown in (_without_quoted(text), _TAG.sub("\n", text)):
        lines = [" ".join(line.split()) for line in shown.splitlines()]
        lines = [
            line
            for line in lines
            if line and not line.startswith(("<", "```")) and any(map(str.isalnum, line))
        ]
        if lines:
            end = next(
                (n for n, line in enumerate(lines[:_MOST_LINES], 1) if not line.endswith(":")), _MOST_LINES
            )
            return shortened(" ".join(lines[:end]), _LONGEST)
    return ""


def _without_quoted(text: str) -> str:
    """Replace code and each element, such as `<context>…</context>`, by a line break in linear time.

    The content of an element remains if the text before it ends with a colon.
    """
    text = _FENCED.sub("\n", text)
    last = {closing[1]: closing.start() for closing in _CLOSING_TAG.finditer(text)}
    kept: list[str] = []
    end = 0
    for opening in _OPENING_TAG.finditer(text):
        if opening.start() >= end and last.get(opening[1], -1) >= opening.end():
            before = text[end : opening.start()]
            closing = f"</{opening[1]}>"
            closed = text.index(closing, opening.end())
            is_introduced = before.rstrip().endswith(":")
            kept += [before, text[opening.end() : closed]] if is_introduced else [before]
            end = closed + len(closing)
    return "\n".join([*kept, text[end:]])


def replaces_task(text: str, *, is_finished: bool, has_files: bool) -> bool:
    """Return whether a later message of the user replaces the task.

    `is_finished` is set if the assistant had ended its turn, so that the message does not interrupt its work,
    `has_files` if it works on files. In a mere conversation, users answer questions at length.
    """
    if len(text) > _LONGEST_REQUEST:
        return False
    sentences = _SENTENCE_END.split(task_of(text))
    if _PIVOT.match(sentences[0]) or task_words.PIVOT.match(sentences[0]):
        return True
    if not is_finished or _ANSWER.match(text):
        return False
    return (has_files and _is_report(text, sentences[0])) or any(map(_is_request, sentences))


def _is_report(text: str, sentence: str) -> bool:
    """Whether a text describes new work at length, instead of asking a question or pasting an output."""
    is_prose = sentence[:1].isalpha() and _word_count(sentence) >= _REPORT_SENTENCE_WORDS
    is_question = sentence.endswith(("?", "？")) or _QUESTION.match(sentence) is not None
    return is_prose and not is_question and _word_count(text) >= _REPORT_WORDS


def _is_request(sentence: str) -> bool:
    is_work = _REQUEST.match(sentence) or task_words.REQUEST.match(sentence)
    return _word_count(sentence) >= _MIN_WORDS and is_work is not None


def _word_count(text: str) -> int:
    """Return the number of words. Two characters of Chinese or Japanese count as one."""
    return len(_CHARACTER.sub(" ", text).split()) + len(_CHARACTER.findall(text)) // 2
