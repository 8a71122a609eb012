"""Select statements of a conversation without tools for a recap: names, dates, figures, commitments."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from compaction.recap.values import Item
from compaction.shortening import shortened
from compaction.sizes.tokens import TokenCounter

#: The word after an ordinal within a sentence, such as "31. März" or "31. maj".
_AFTER_ORDINAL = r"(?:[a-zà-ÿ]|Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)"
_SENTENCE_END = re.compile(rf"(?<=[.!?])\s+(?!(?<=\d\.\s){_AFTER_ORDINAL})|(?<=[。！？])|\n+")
#: Details that cannot be guessed once they are lost: figures, dates, and names within a sentence.
_FACT = re.compile(
    r"[$€£#]?\d[\w.,:/%-]*[\w%]"
    r"|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b|\b(?:January|February|March|April|June|July|August"
    r"|September|October|November|December)\b"
    r"|(?<=[\w,;:] )[A-Z][\w'-]*[a-z][\w'-]*|\b[A-Z]{2,}\b"
    # Possessive and only at the start of a word: otherwise, the time is quadratic in its length.
    r"|(?<![\w.-])[\w.-]++@[\w-]+\.[\w.-]+"
)
_COMMITMENT = re.compile(
    r"\b(?:(?:I|we)(?:'ll| will| won't| promise| agree|'d prefer| prefer| need)|deadline|due (?:on|by)|agreed"
    r"|must|never|always|instead of|no longer|allergic|cancel(?:led|ed)?)\b",
    re.IGNORECASE,
)
_LIST_MARK = re.compile(r"^(?:\d+[.)]|[-*#>]+)\s*")
#: Half of an emphasis in Markdown, but not a power such as 2**10.
_EMPHASIS = re.compile(r"(?<!\w)\*\*(?=\S)|(?<=\S)\*\*(?!\w)")
#: A numbered line of a file or a search result.
_LISTED = re.compile(r"\d+(?::(?!\d)|→)")
#: Tokens added to the length of a sentence, so that short ones with one name do not come first.
_SHORT = 12
_LENGTH_MIN, _LENGTH_MAX = 12, 320


def facts(text: str) -> frozenset[str]:
    """Return the figures, dates and names in a text."""
    return frozenset(found.strip(".,:-'") for found in _FACT.findall(text)) - {"I", "OK"}


def statements(text: str) -> Iterator[str]:
    """Yield the sentences of a text that carry a fact or a commitment, clipped, each as one line."""
    for sentence in _SENTENCE_END.split(text):
        line = _LIST_MARK.sub("", " ".join(_EMPHASIS.sub("", sentence).split()))
        if (
            len(line) >= _LENGTH_MIN
            and not line.endswith(":")
            and not _LISTED.match(line)
            and (_FACT.search(line) or _COMMITMENT.search(line))
        ):
            yield shortened(line, _LENGTH_MAX)


def choose(
    items: Collection[Item], *, shown: str, cap_tokens: int, counter: TokenCounter
) -> tuple[Item, ...]:
    """Return as many statements as fit, in chronological order.

    Those with the most facts per token are chosen first, the newer one of two alike. Each must have a
    commitment, or a fact that neither `shown` nor a chosen statement contains.
    """
    known = set(facts(shown))
    ranked = sorted(items, key=lambda item: _density(item, counter), reverse=True)
    kept = set[str]()
    for item in ranked:
        new = facts(item.text) - known
        tokens = counter.count(item.render()) + 1
        if tokens > cap_tokens or not (new or _COMMITMENT.search(item.text)) or item.text in shown:
            continue
        cap_tokens -= tokens
        known |= new
        kept.add(item.text)
    return tuple(sorted((item for item in items if item.text in kept), key=lambda item: item.sources))


def _density(item: Item, counter: TokenCounter) -> tuple[float, tuple[int, ...]]:
    count = len(facts(item.text)) + bool(_COMMITMENT.search(item.text))
    return round(count / (counter.count(item.text) + _SHORT), 2), item.sources
