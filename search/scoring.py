"""The weight of a term in a message: BM25 with a fixed average length.

The average is a constant, so that a weight never changes after indexing. An identifier is as significant in a
long output as in a short message, and its repetitions add little, so its weight hardly depends on either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

#: Saturation of repetitions, and influence of the length (from 0 to 1).
SATURATION, LENGTH_SHARE = 1.2, 0.6
#: Number of words of an average message. It is larger than in conversations, because the evidence for a
#: question about a coding session is often a long output.
AVERAGE_LENGTH = 800.0
#: Minimum weight of a strong match, in which a short message repeats a term. Segments list these terms
#: separately.
STRONG = 1.75

_LENGTH_STEPS = 12.0


def length_code(length: int) -> int:
    """Return a number of words as one byte on a logarithmic scale."""
    return min(255, round(_LENGTH_STEPS * math.log2(length + 1)))


_LENGTHS = [2 ** (code / _LENGTH_STEPS) - 1 for code in range(256)]
_NORMS = [SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length / AVERAGE_LENGTH) for length in _LENGTHS]


def weight(count: int, code: int) -> float:
    """Return the weight of a word that occurs `count` times in a message of a length code, below 2.2."""
    return count * (SATURATION + 1) / (count + _NORMS[code])


@cache
def weights(count: int) -> Sequence[float]:
    """Return the weights of a word that occurs `count` times by the length code of the message."""
    return [weight(count, code) for code in range(256)]


def identifier_weight(count: int) -> float:
    """Return the weight of an identifier."""
    return 1.0 + 0.1 * (1 - 1 / count)


def inverse_frequency(documents: float, total: float) -> float:
    """Return the inverse document frequency of a term that occurs in `documents` of `total` messages."""
    documents = min(documents, total)
    return math.log(1 + (total - documents + 0.5) / (documents + 0.5))
