"""The settings of strategies: sizes, shares, and rules for single tools.

`policy.Policy` extends these settings with the steps to run and the conditions for running them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from compaction.errors import PolicyError

#: Maximum value of a setting: databases and JSON libraries cannot store arbitrarily large numbers.
MAX_SETTING = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRule:
    """Settings for the tools whose name matches `pattern` (`*` and `?`, case-sensitive).

    Outputs of an `exempt` tool are never edited, but may be evicted; those of a `never_collapse` tool may
    still be clipped. `clip_tokens` overrides the policy's cap. `is_read` specifies whether the tool reads
    files; None derives it from the name.
    """

    pattern: str
    never_collapse: bool = False
    clip_tokens: int | None = None
    exempt: bool = False
    is_read: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str) or not self.pattern:
            raise PolicyError("tools.pattern", "must be a non-empty string")
        for name in ("never_collapse", "exempt", "is_read"):
            if not isinstance(getattr(self, name), bool | None):
                raise PolicyError(f"tools.{name}", "must be true or false")
        size = self.clip_tokens
        if size is not None and type(size) is not int:
            raise PolicyError("tools.clip_tokens", "must be an integer")
        if size is not None and not 50 <= size <= MAX_SETTING:
            raise PolicyError(
                "tools.clip_tokens", f"must be at least 50 and at most {MAX_SETTING}, not {size}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategySettings:
    """The settings that strategies read. Shares are shares of the budget, sizes are in tokens."""

    # The tail extends back until both minimums are reached.
    tail_share: float = 0.25
    tail_messages: int = 4

    collapse_tokens: int = 800
    descriptor_names: int = 60  #: identifiers that a descriptor lists at most
    clip_tokens: int = 1_500
    clip_head: float = 0.6
    recency_collapse_tokens: int = 200  #: in the older half of the middle
    offload_share: float = 0.25
    recap_tokens_min: int = 200
    recap_tokens_max: int = 8_000
    recap_share: float = 0.25  #: of the budget without components
    recap_span_share: float = 0.20  #: and this share of the raw size of the messages that it replaces
    tools: tuple[ToolRule, ...] = ()

    def tool_rule(self, tool: str) -> ToolRule:
        """Return the first rule that matches the tool's name, or a rule with the defaults."""
        return _tool_rule(self.tools, tool)


@lru_cache(1024)
def _tool_rule(rules: tuple[ToolRule, ...], tool: str) -> ToolRule:
    return next((rule for rule in rules if fnmatchcase(tool, rule.pattern)), ToolRule(pattern="*"))
