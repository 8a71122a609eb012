"""Apply the rules: a pre-filter on raw bytes, and replacement in decoded strings."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

import re2

from redaction import gitleaks
from redaction.arguments import ARGUMENTS, OPTIONS_ANCHOR
from redaction.commands import command_rules
from redaction.credentials import credential_rules
from redaction.files import file_rules
from redaction.invisible import INTERRUPTED
from redaction.known_tokens import known_rules
from redaction.library import library_rules
from redaction.placeholders import PLACEHOLDER, placeholder
from redaction.spans import Rule, Span
from redaction.tools import tool_rules

#: What hides text from the anchors: printable ASCII as \u00XX, `\/`, and invisible characters. Excludes <, >
#: and &, which some encoders always escape but no anchor contains.
_HIDDEN = rf"\\u00(?:2[0-57-9a-fA-F]|3[0-9abdABDfF]|[4-7][0-9a-fA-F])|\\/|{INTERRUPTED}"

#: Memory for cached states of the automaton (bytes). RE2 is slower if it needs more.
_MEMORY = 16 << 20


def _automaton(anchors: Iterable[str]) -> re2.Set:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY
    automaton = re2.Set.SearchSet(options)
    for anchor in anchors:
        automaton.Add(anchor)
    automaton.Compile()
    return automaton


_KNOWN, _CONTEXT = (*library_rules(), *known_rules()), tuple(credential_rules())

#: The first automaton scans all bytes. Its states are a product of the anchors that matched so far, so the
#: rules of a group share one anchor, and an automaton of the group separates them.
_GROUPS: tuple[tuple[Rule, ...], ...] = (
    tuple(gitleaks.rules()),
    (*command_rules(), ARGUMENTS, *file_rules(), *tool_rules()),
)
_GROUP_ANCHORS = tuple(_automaton(rule.anchor for rule in group) for group in _GROUPS)
_SINGLE: tuple[Rule, ...] = (*_KNOWN, *_CONTEXT)
_SHARED = (
    gitleaks.shared_anchor(),
    "|".join(f"(?:{OPTIONS_ANCHOR if rule is ARGUMENTS else rule.anchor})" for rule in _GROUPS[1]),
)
_ANCHORS = _automaton([*(rule.anchor for rule in _SINGLE), *_SHARED, _HIDDEN])
_HIDDEN_ID = len(_SINGLE) + len(_GROUPS)

#: In order of precedence: if two rules find overlapping secrets, the first one determines the kind.
RULES: tuple[Rule, ...] = (*_KNOWN, *chain.from_iterable(_GROUPS), *_CONTEXT)
_RANKS = {id(rule): rank for rank, rule in enumerate(RULES)}


def rules_to_apply(raw: bytes) -> tuple[list[Rule], bool]:
    """Return the rules that may match this JSON, in order, and whether escapes may hide more matches."""
    ids = _ANCHORS.Match(raw)
    if not ids:
        return [], False
    rules = [_SINGLE[i] for i in ids if i < len(_SINGLE)]
    for number, group in enumerate(_GROUPS):
        if len(_SINGLE) + number in ids:
            rules += [group[i] for i in _GROUP_ANCHORS[number].Match(raw) or ()]
    return sorted(rules, key=lambda rule: _RANKS[id(rule)]), _HIDDEN_ID in ids


#: A secret may be hidden by another one that follows it without a boundary, and is found in the next pass.
_PASSES = 4


def redact_text(text: str, rules: Sequence[Rule], *, key: bytes, found: Counter[str]) -> str:
    """Return the text with placeholders, or the same object if nothing matches. Counts kinds in `found`."""
    for _ in range(_PASSES):
        scanned = encodable(text)
        spans = [(span, rule.kind) for rule in rules for span in rule.find(scanned)]
        before, text = text, replaced(text, spans, key=key, found=found) if spans else text
        if text == before:
            break
    return text


def replaced(text: str, spans: Sequence[tuple[Span, str]], *, key: bytes, found: Counter[str]) -> str:
    pieces, end = [], 0
    for (start, stop), kind in _merged(spans, text):
        found[kind] += 1
        pieces += [text[end:start], placeholder(kind, text[start:stop], key)]
        end = stop
    return "".join([*pieces, text[end:]]) if pieces else text


def _merged(spans: Sequence[tuple[Span, str]], text: str) -> list[tuple[Span, str]]:
    """Return the spans from left to right. Merges overlapping ones and drops those in placeholders."""
    done = [match.span() for match in PLACEHOLDER.finditer(text)]
    ends = [end for _, end in done]
    merged: list[tuple[Span, str, int]] = []
    for rank, ((start, stop), kind) in sorted(enumerate(spans), key=lambda item: item[1][0]):
        following = bisect_right(ends, start)
        if start >= stop or (following < len(done) and done[following][0] < stop):
            continue
        if merged and start < merged[-1][0][1]:
            (old_start, old_stop), old_kind, old_rank = merged[-1]
            first = min((old_rank, old_kind), (rank, kind))
            merged[-1] = ((old_start, max(old_stop, stop)), first[1], first[0])
        else:
            merged.append(((start, stop), kind, rank))
    return [(span, kind) for span, kind, _ in merged]


def encodable(text: str) -> str:
    """Replace lone surrogates, which RE2 rejects, without changing the text's length."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
