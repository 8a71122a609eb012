"""The rules of compaction: the budget, and the policy with its presets.

Shares are shares of the budget, sizes are in tokens. A policy is a value: equal policies make the same
decisions, and each record contains the `version` of the applied rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace

from compaction.errors import PolicyError
from compaction.messages import JSON
from compaction.settings import MAX_SETTING, StrategySettings, ToolRule
from compaction.strategies import STRATEGIES, steps_of

__all__ = ["POLICY_VERSION", "PRESETS", "Budget", "Policy", "StrategySettings", "ToolRule", "get_policy"]

#: Incremented when the meaning of a setting or the behavior of a step changes.
POLICY_VERSION = 1

#: Maximum characters of `summary_instructions`: each compaction stores its policy.
MAX_SUMMARY_INSTRUCTIONS = 2_000

#: Who compacts: contextapp, or the provider.
ENGINES = OWN, PROVIDER = "own", "provider"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The maximum number of input tokens of a prompt."""

    input_tokens: int

    def __post_init__(self) -> None:
        if self.input_tokens < 1:
            raise PolicyError("budget.input_tokens", f"must be at least 1, not {self.input_tokens}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy(StrategySettings):
    """When to compact, which steps to run, and how far to reduce the prompt."""

    name: str = "balanced"
    version: int = POLICY_VERSION
    steps: tuple[str, ...] = field(default_factory=lambda: steps_of("balanced"))
    engine: str = OWN  #: `provider` lets the provider compact, see `compaction.provider_engine`
    summary_instructions: str = ""  #: what the summaries of a model must keep or leave out

    # Triggers: `soft` compacts in the background, `hard` immediately; 0 turns a trigger off.
    soft: float = 0.70
    hard: float = 0.95
    target: float = 0.40  #: a compaction reduces the prompt to this share
    refire_delta: float = 0.05  #: minimum growth of the prompt before another compaction
    every_turns: int = 0
    idle_seconds: int = 0
    max_failures: int = 3  #: consecutive failures that open the circuit breaker

    # Prices, as multiples of an uncached input token: for rewriting the cache, and for reading it.
    cache_write_price: float = 1.25
    cache_read_price: float = 0.1

    def __post_init__(self) -> None:
        _check(self)

    def to_json(self) -> dict[str, JSON]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, JSON]) -> Policy:
        """Return the policy of the preset named in `preset`, with the other settings as overrides.

        Raises PolicyError for an unknown preset or setting and for invalid values.
        """
        settings = dict(data)
        name = settings.pop("preset", settings.get("name", "balanced"))
        if not isinstance(name, str):
            raise PolicyError("preset", "must be a string")
        base = PRESETS.get(name, PRESETS["balanced"]) if "preset" not in data else get_policy(name)
        known = {f.name: f for f in fields(cls)}
        for setting, value in settings.items():
            if setting not in known:
                raise PolicyError(setting, f"unknown setting; known: {', '.join(sorted({'preset', *known}))}")
            settings[setting] = _typed(setting, value, getattr(base, setting))
        return replace(base, **settings)


#: What the value of a setting of each type must be, in errors.
_KINDS = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}


def _typed(setting: str, value: JSON, like: object) -> object:
    """Return `value` with the type of the setting. Raises PolicyError for another type."""
    if setting == "tools":
        if not isinstance(value, list | tuple):
            raise PolicyError(setting, "must be a list of tool rules")
        return tuple(_tool_rule_of(item) for item in value)
    if setting == "steps":
        if not isinstance(value, list | tuple):
            raise PolicyError(setting, "must be a list of steps")
        return tuple(str(step) for step in value)
    if isinstance(like, bool) or isinstance(value, bool):
        is_valid = isinstance(like, bool) and isinstance(value, bool)
    elif isinstance(like, float):
        is_valid = isinstance(value, int | float)
    else:
        is_valid = isinstance(value, type(like))
    if not is_valid:
        raise PolicyError(setting, f"must be {_KINDS[type(like)]}")
    return value


def _tool_rule_of(item: JSON) -> ToolRule:
    if isinstance(item, ToolRule):
        return item
    if not isinstance(item, Mapping):
        raise PolicyError("tools", "a rule must be an object")
    try:
        return ToolRule(**item)
    except TypeError:
        known = [f.name for f in fields(ToolRule)]
        unknown = sorted(item.keys() - set(known))
        if not unknown:
            raise PolicyError("tools.pattern", "must be given in each rule") from None
        text = f"unknown setting of a rule; known: {', '.join(known)}"
        raise PolicyError(f"tools.{unknown[0]}", text) from None


_SHARES = (
    "soft",
    "hard",
    "target",
    "tail_share",
    "offload_share",
    "recap_share",
    "recap_span_share",
    "refire_delta",
    "clip_head",
)

_MINIMUMS = {
    "version": 1,
    "every_turns": 0,
    "idle_seconds": 0,
    "max_failures": 1,
    "tail_messages": 1,
    "collapse_tokens": 50,
    "descriptor_names": 0,
    "clip_tokens": 50,
    "recency_collapse_tokens": 50,
    "recap_tokens_min": 50,
    "recap_tokens_max": 50,
    "cache_write_price": 0,
    "cache_read_price": 0,
}


def _check(policy: Policy) -> None:
    """Raise PolicyError for the first invalid setting."""
    for name in _SHARES:
        _must(name, 0 <= getattr(policy, name) <= 1, f"be between 0 and 1, not {getattr(policy, name)}")
    for name, minimum in _MINIMUMS.items():
        value = getattr(policy, name)
        _must(name, value >= minimum, f"be at least {minimum}, not {value}")
        _must(name, value <= MAX_SETTING, f"be at most {MAX_SETTING}, not {value}")
    hard = policy.hard or 1.0
    _must("engine", policy.engine in ENGINES, f"be {' or '.join(ENGINES)}, not {policy.engine!r}")
    longest = MAX_SUMMARY_INSTRUCTIONS
    _must(
        "summary_instructions",
        len(policy.summary_instructions) <= longest,
        f"have at most {longest:,} characters",
    )
    _must("clip_head", 0 < policy.clip_head < 1, f"be between 0 and 1, not {policy.clip_head}")
    _must("target", 0 < policy.target <= hard, f"be above 0 and at most `hard` ({hard}), not {policy.target}")
    _must("soft", policy.soft <= hard, f"be at most `hard` ({hard}), not {policy.soft}")
    least = policy.recap_tokens_min
    _must("recap_tokens_max", policy.recap_tokens_max >= least, f"be at least `recap_tokens_min` ({least})")
    _must("cache_read_price", policy.cache_read_price > 0, "be above 0")
    for step in policy.steps:
        if step not in STRATEGIES:
            raise PolicyError("steps", f"unknown step {step!r}; known: {', '.join(STRATEGIES)}")


def _must(name: str, is_met: bool, requirement: str) -> None:
    if not is_met:
        raise PolicyError(name, f"must {requirement}")


PRESETS: Mapping[str, Policy] = {
    "off": Policy(name="off", steps=(), soft=0.0, hard=0.0),
    "baseline": Policy(
        name="baseline",
        steps=steps_of("baseline"),
        soft=0.0,
        hard=1.0,
        target=1.0,
        tail_share=0.0,
        tail_messages=1,
    ),
    "masking": Policy(name="masking", steps=steps_of("masking"), soft=0.0),
    "balanced": Policy(),
    "aggressive": Policy(
        name="aggressive",
        steps=steps_of("aggressive"),
        hard=0.80,
        soft=0.60,
        target=0.30,
        tail_share=0.15,
        collapse_tokens=400,
    ),
}


def get_policy(name: str) -> Policy:
    """Return a preset by name. Raises PolicyError if it does not exist."""
    try:
        return PRESETS[name]
    except KeyError:
        raise PolicyError("preset", f"must be one of: {', '.join(PRESETS)}") from None
