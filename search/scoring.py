"""How well a message matches a term: BM25 with a fixed average length.

The average is a constant, so that a weight never changes after it is indexed. An identifier says as much in a
long output as in a short message, and repeating it adds little: its weight hardly depends on either.
"""

from __future__ import annotations

import math

#: How fast repetitions saturate, and how much the length counts (from 0 to 1).
SATURATION, LENGTH_SHARE = 1.2, 0.6
#: Words of an average message.
AVERAGE_LENGTH = 60.0
#: From this weight on a message is a strong match for a term; segments list these terms separately.
STRONG = 1.45

_LENGTH_STEPS = 12.0


def length_code(length: int) -> int:
    """Return a number of words as one byte, in logarithmic steps."""
    return min(255, round(_LENGTH_STEPS * math.log2(length + 1)))


_LENGTHS = [2 ** (code / _LENGTH_STEPS) - 1 for code in range(256)]
_NORMS = [SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length / AVERAGE_LENGTH) for length in _LENGTHS]


def weight(count: int, code: int) -> float:
    """Return the weight of a word that occurs `count` times in a message of a length code, below 2.2."""
    return count * (SATURATION + 1) / (count + _NORMS[code])


def identifier_weight(count: int) -> float:
    """Return the weight of an identifier."""
    return 1.0 + 0.1 * (1 - 1 / count)


def inverse_frequency(documents: float, total: float) -> float:
    """Return how much a term that occurs in `documents` of `total` messages says about one."""
    documents = min(documents, total)
    return math.log(1 + (total - documents + 0.5) / (documents + 0.5))
