"""The Porter stemmer for English words.

Words of other languages lose at most an ending, in messages and in queries alike, so they are still found.
Source: M. F. Porter, "An algorithm for suffix stripping", 1980.
"""

from __future__ import annotations

import re

_C, _V = "[^aeiou][^aeiouy]*", "[aeiouy][aeiou]*"
_M0 = re.compile(f"^({_C})?{_V}{_C}")
_M1 = re.compile(f"^({_C})?{_V}{_C}({_V})?$")
_M2 = re.compile(f"^({_C})?{_V}{_C}{_V}{_C}")
_HAS_VOWEL = re.compile(f"^({_C})?[aeiouy]")
_SHORT = re.compile(f"^{_C}[aeiouy][^aeiouwxy]$")
_DOUBLE = re.compile(r"([^aeiouylsz])\1$")

_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble",
    "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate",
    "ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al",
    "iviti": "ive", "biliti": "ble", "logi": "log",
}  # fmt: skip
_STEP_3 = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "sion", "tion", "ou",
    "ism", "ate", "iti", "ous", "ive", "ize",
)  # fmt: skip


def _ending(suffixes: object) -> re.Pattern[str]:
    return re.compile(f"^(.+?)({'|'.join(suffixes)})$")  # type: ignore[arg-type]


_ENDING_2, _ENDING_3, _ENDING_4 = _ending(_STEP_2), _ending(_STEP_3), _ending(_STEP_4)


def stem(word: str) -> str:
    """Return the stem of a lower-case word of ASCII letters."""
    if len(word) < 4:
        return word
    word = _past_and_progressive(_plural(word))
    if word.endswith("y") and _HAS_VOWEL.match(word[:-1]):
        word = word[:-1] + "i"
    for ending, replacements in ((_ENDING_2, _STEP_2), (_ENDING_3, _STEP_3)):
        if (match := ending.match(word)) and _M0.match(match[1]):
            word = match[1] + replacements[match[2]]
    return _final_e(_derived(word))


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past_and_progressive(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _M0.match(word[:-3]) else word
    base = word[:-2] if word.endswith("ed") else word[:-3] if word.endswith("ing") else ""
    if not base or not _HAS_VOWEL.match(base):
        return word
    if base.endswith(("at", "bl", "iz")) or _SHORT.match(base):
        return base + "e"
    return base[:-1] if _DOUBLE.search(base) else base


def _derived(word: str) -> str:
    match = _ENDING_4.match(word)
    if match is None:
        return word
    base = match[1] + match[2][0] if match[2] in {"sion", "tion"} else match[1]
    return base if _M2.match(base) else word


def _final_e(word: str) -> str:
    if word.endswith("e"):
        base = word[:-1]
        if _M2.match(base) or (_M1.match(base) and not _SHORT.match(base)):
            word = base
    return word[:-1] if word.endswith("ll") and _M2.match(word) else word
