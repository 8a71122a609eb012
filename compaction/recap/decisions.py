"""Find the sentences of an assistant's text that state a decision, a cause or a rule."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import re2

from compaction.recap.decision_words import ENGLISH, OTHERS
from compaction.text_cache import once_per_text
from compaction.utf8 import utf8

_DECISION = re.compile(ENGLISH, re.IGNORECASE)
#: Not within a word, except in scripts without spaces between words.
_DECISION_OF_OTHERS = re.compile(rf"(?<![^\W\u3040-\uffff])(?:{OTHERS})", re.IGNORECASE)
#: The same for RE2, which is faster. It finds more, because its word boundaries are those of ASCII.
_MAY_DECIDE = re2.compile(f"(?i){ENGLISH}")
_MAY_DECIDE_OF_OTHERS = re2.compile("(?i)" + OTHERS.replace(r"\b", ""))
_PATTERNS = ((_DECISION, _MAY_DECIDE), (_DECISION_OF_OTHERS, _MAY_DECIDE_OF_OTHERS))
#: Beginnings of text that is not a decision: announcements, guesses, requests to the user, table rows, code
#: comments, quotations.
_UNDECIDED = re.compile(
    r"(?:(?:but|or|and|so|now|actually|instead|hmm|okay|good|great|first|next|then)[,.!]? )*"
    r"(?:(?:let me|let's|i'll|i will|i need to|i'm going to|we need to) (?:also |now |just |first )?"
    r"(?:check|see|look|find|verify|read|think|search|try|run|test|start|continue|explore"
    r"|use \S+ to (?:see|find|check|look|run|read|search))\b"
    r"|maybe\b|wait\b|i think i (?:found|see)\b|please\b|if you(?:['’]d| would) (?:like|prefer)\b)|\||//|>",
    re.IGNORECASE,
)
#: Endings of text that continues elsewhere: questions, introductions, parts of lists.
_CONTINUED = re.compile(r"(?:[?:？：,(][\"'”’)]*|,? (?:or|and|vs\.))$", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
#: Words that say nothing about the subject. A sentence of these alone, such as "The fix is in place.", is no
#: decision.
_EMPTY_WORDS = frozenset(
    _WORD.findall("""
    a about actual actually add added adding address adds after again all already also am an analyzing
    and another any applied apply are as at be because been before being both bottom bug bugs but by can
    case cases cause causes change changed changes changing check checks clear code complete completely
    confirm confirmed confirms correct correctly could covered d decide decided deciding did different
    do does doesn doing done each either even every few find fine first fix fixed fixes for found from
    fundamental general get go going good great had handle handles handling happening has have hmm how i
    if in instead into is isn issue issues it item items its just keep know less let likely line ll look
    looking looks m main make makes making may maybe me might more most must my necessary need needed
    needs new no not now obvious occurring of okay on one only or other our out part partially perhaps
    place prefer probably problem problems re real realize really reason reasons root s said same say
    see should shouldn show shows simple simpler so solution some sound specific still straightforward
    such suggests systematically t tests than that the them then there these they thing things think
    this those to too tried try trying turns up update updates us use uses using ve was wasn way we well
    were what when where whether which while who why will with without won work working works would
    wouldn wrong yes yet you your
    """)
)
#: The end of a sentence, but not of an abbreviation.
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!vs\.)(?<!e\.g\.)(?<!i\.e\.)\s+|(?<=[。！？])")
_INNER_END = re.compile(r"[.!?]\s")  # begins with a set of characters, so the search is fast
_UNSPACED_END = re.compile(r"[。！？]")

#: Longer sentences are prose about the work, not decisions. The minimum is in bytes, because a character of
#: Chinese says as much as three letters, the maximum in characters.
_MIN_SENTENCE, _MAX_SENTENCE = 20, 280


@once_per_text(1 << 13)
def decisions(text: str) -> Sequence[str]:
    """Return the first and the last sentence that state a decision. Those in between are usually drafts."""
    encoded = utf8(text)
    patterns = [pair for pair in _PATTERNS if pair[1].search(encoded)]
    if not patterns:
        return ()
    sentences = [sentence.replace("**", "").strip(" -*#") for sentence in _sentences(text)]
    first = next((n for n, sentence in enumerate(sentences) if _decides(sentence, patterns)), None)
    if first is None:
        return ()
    last = next(n for n in range(len(sentences) - 1, -1, -1) if _decides(sentences[n], patterns))
    return (sentences[first],) if first == last else (sentences[first], sentences[last])


def _sentences(text: str) -> Iterator[str]:
    """Split a text, without its blocks of code, at line breaks and ends of sentences.

    Only few lines need the pattern.
    """
    is_ended = is_code = False
    for line in text.split("\n"):
        if line.count("```") % 2 and line.lstrip().startswith("```"):
            is_code = not is_code
        if is_code:
            continue
        if is_ended:  # the spaces after a sentence may include line breaks
            line = line.lstrip()
            if not line:
                continue
        bare = line.rstrip()
        is_ended = bare.endswith((".", "!", "?"))
        shown = bare if is_ended else line
        if _INNER_END.search(shown) or (not shown.isascii() and _UNSPACED_END.search(shown)):
            yield from _SENTENCE_END.split(shown)
        else:
            yield shown


def _decides(sentence: str, patterns: Sequence[tuple[re.Pattern[str], Any]]) -> bool:
    encoded = utf8(sentence)
    return (
        len(encoded) >= _MIN_SENTENCE
        and len(sentence) <= _MAX_SENTENCE
        and not _UNDECIDED.match(sentence)
        and any(may_match.search(encoded) and pattern.search(sentence) for pattern, may_match in patterns)
        and not _EMPTY_WORDS.issuperset(_WORD.findall(sentence.lower()))
        and not _CONTINUED.search(sentence)
    )
