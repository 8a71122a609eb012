"""Divide the change in cost between two periods into the effects of its causes.

The cost of a period is a product of five factors, for the four kinds of tokens k:

    cost = calls × (input per call × Σ input share(k) × price(k) + output per call × price(output))

The input shares (uncached, read from the cache, written to it) depend on caching. The price of a kind is the
effective one, over all models, so it changes with the prices and with the mix of models.

The effect of a factor is its Shapley value: the change in cost when this factor alone takes its later
value, averaged over all orders in which the factors can change. Substituting the factors in one fixed order
would also add up, but which factor gets the combined effects (more calls with larger prompts) would depend on
that order. LMDI is independent of the order too, but undefined for factors that are 0, such as the cache
hits of a model without a cache. See L. S. Shapley, "A value for n-person games" (1953), and J. Albrecht,
D. François and K. Schoors, "A Shapley decomposition of carbon emissions without residuals" (2002).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from decimal import Context, Decimal, localcontext
from itertools import combinations
from math import comb

#: Relative prices of a model without known ones, by kind of token: those of most models with a cache.
_TYPICAL = (Decimal(1), Decimal("0.1"), Decimal("1.25"), Decimal(5))
#: The factors of periods without calls.
_NONE = ([Decimal()], [Decimal()], [Decimal()] * 3, [Decimal()], [Decimal()] * 4)
#: Enough digits that the effects are exact before they are rounded to micro-dollars.
_CONTEXT = Context(prec=50)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """The usage of one model in a period: billed tokens, and their cost in micro-dollars.

    `rates` are the prices of an uncached, a cached, a cache-write and an output token, in any unit. They
    divide the cost by kind of token, so only their ratios count. None if they are unknown.
    """

    uncached: int
    cache_read: int
    cache_write: int
    output: int
    cost_microusd: int
    rates: tuple[Decimal, Decimal, Decimal, Decimal] | None = None

    @property
    def tokens(self) -> tuple[int, int, int, int]:
        return self.uncached, self.cache_read, self.cache_write, self.output


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodUsage:
    """The calls of a period with usage and price, and their usage by model.

    Models without tokens are costs that were reported without tokens. Raises `ValueError` if there are tokens
    but no calls.
    """

    calls: int
    models: Sequence[ModelUsage] = ()

    def __post_init__(self) -> None:
        if self.calls < 1 and any(self.tokens):
            raise ValueError("Usage of at least one call is required.")

    @property
    def tokens(self) -> tuple[int, int, int, int]:
        """The tokens by kind, in the order of `ModelUsage`."""
        uncached, cache_read, cache_write, output = (
            sum(model.tokens[kind] for model in self.models) for kind in range(4)
        )
        return uncached, cache_read, cache_write, output

    @property
    def input_tokens(self) -> int:
        return sum(self.tokens[:3])

    @property
    def cost_microusd(self) -> int:
        return sum(model.cost_microusd for model in self.models)

    @property
    def cost_without_tokens(self) -> int:
        return sum(model.cost_microusd for model in self.models if not any(model.tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class CostChange:
    """Effects on the cost in micro-dollars; they add up to its change.

    `prices` is the effect of prices and of the mix of models. `without_tokens` is the change of costs that
    were reported without tokens, which are not divided further.
    """

    calls: int
    input_per_call: int
    caching: int
    output_per_call: int
    prices: int
    without_tokens: int

    @property
    def total(self) -> int:
        return sum(asdict(self).values())


def cost_change(before: PeriodUsage, after: PeriodUsage) -> CostChange:
    """Return the effects of the five factors on the cost, rounded to micro-dollars so that they add up.

    A factor that one of the periods lacks does not change: if there were no calls, for example, the whole
    change is an effect of the number of calls.
    """
    without_tokens = after.cost_without_tokens - before.cost_without_tokens
    total = after.cost_microusd - before.cost_microusd - without_tokens
    with localcontext(_CONTEXT):
        old, new = _factors(before), _factors(after)
        olds = [left or right or none for left, right, none in zip(old, new, _NONE, strict=True)]
        news = [right or left or none for left, right, none in zip(old, new, _NONE, strict=True)]
        effects = _rounded(_shapley_values(olds, news), total)
    names = [field.name for field in fields(CostChange)]
    return CostChange(**dict(zip(names, [*effects, without_tokens], strict=True)))


def _factors(period: PeriodUsage) -> list[list[Decimal] | None]:
    """Return the five factors: one value, or one for each kind of token. None if a factor is undefined."""
    calls, tokens, input_tokens = period.calls, period.tokens, period.input_tokens
    return [
        [Decimal(calls)],
        [Decimal(input_tokens) / calls] if calls else None,
        [Decimal(count) / input_tokens for count in tokens[:3]] if input_tokens else None,
        [Decimal(tokens[3]) / calls] if calls else None,
        _prices(period.models) if any(tokens) else None,
    ]


def _prices(models: Iterable[ModelUsage]) -> list[Decimal]:
    """Return the effective price of each kind of token in micro-dollars.

    The cost of a model is divided by kind in proportion to its rates. The price of a kind without tokens is
    what they would have cost: the mean over the models, weighted by their tokens.
    """
    priced = [(model.tokens, _model_prices(model)) for model in models if any(model.tokens)]
    found = []
    for kind in range(4):
        is_used = any(tokens[kind] for tokens, _ in priced)
        weights = [tokens[kind] if is_used else sum(tokens) for tokens, _ in priced]
        cost = sum(
            (weight * prices[kind] for weight, (_, prices) in zip(weights, priced, strict=True)), Decimal()
        )
        found.append(cost / sum(weights))
    return found


def _model_prices(model: ModelUsage) -> list[Decimal]:
    """Return the model's price of each kind of token, such that its tokens cost what they did."""
    for rates in (model.rates, _TYPICAL):
        if rates and (listed := sum(map(Decimal.__mul__, rates, map(Decimal, model.tokens)), Decimal())):
            return [rate * model.cost_microusd / listed for rate in rates]
    raise AssertionError("A model without tokens has no prices.")


def _cost(factors: Sequence[Sequence[Decimal]]) -> Decimal:
    [calls], [input_per_call], shares, [output_per_call], prices = factors
    input_price = sum(map(Decimal.__mul__, shares, prices), Decimal())
    return calls * (input_per_call * input_price + output_per_call * prices[3])


def _shapley_values(olds: Sequence[Sequence[Decimal]], news: Sequence[Sequence[Decimal]]) -> list[Decimal]:
    """Return each factor's change of the cost, averaged over all orders of the factors."""
    count = len(olds)
    factors = range(count)
    subsets = [frozenset(each) for size in range(count + 1) for each in combinations(factors, size)]
    costs = {
        changed: _cost([news[each] if each in changed else olds[each] for each in factors])
        for changed in subsets
    }
    return [
        sum(
            (
                (costs[changed | {factor}] - costs[changed]) / (count * comb(count - 1, len(changed)))
                for changed in subsets
                if factor not in changed
            ),
            Decimal(),
        )
        for factor in factors
    ]


def _rounded(effects: Sequence[Decimal], total: int) -> list[int]:
    """Round the effects to integers whose sum is `total`, with the smallest errors."""
    rounded = [round(effect) for effect in effects]
    missing = total - sum(rounded)
    step = 1 if missing > 0 else -1
    errors = sorted(range(len(effects)), key=lambda at: step * (rounded[at] - effects[at]))
    for at in errors[: abs(missing)]:
        rounded[at] += step
    return rounded
