"""Provider tokens per estimated token (tiktoken, `o200k_base`), by model family."""

from __future__ import annotations

#: Measured on recorded sessions with reported usage: the growth of the reported prompt divided by the growth
#: of the estimated one, so that content missing in a log has no effect. Medians over sessions: Claude Opus
#: 4.5 1.21, Opus 4.6 1.27, Sonnet 4.5 1.21 (tool outputs; prose up to 1.31), Claude 3.5 Sonnet 1.20,
#: deepseek-chat 1.06, deepseek-reasoner 1.23. The value for Claude is above most sessions', because a
#: slightly smaller prompt is better than one that does not fit. GPT-4o and later use `o200k_base`.
_FACTORS = (
    ("claude", 1.25),
    ("deepseek-reasoner", 1.23),
    ("deepseek", 1.07),
)


def token_factor(model: str) -> float:
    """Return the provider tokens per estimated token for a model, or 1.0 if its family is unknown."""
    name = model.lower()
    return next((factor for family, factor in _FACTORS if family in name), 1.0)
