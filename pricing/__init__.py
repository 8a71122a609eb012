"""Model prices, context windows and the token usage of calls. Plain Python: no Django, no network.

price(model, usage, at)  ->  Price          # one call, in micro-dollars
context_window(model)    ->  int | None     # tokens
"""

from pricing.table import UNPRICED, Price, Rates, calls_cost, context_window, price, rates

__all__ = ["UNPRICED", "Price", "Rates", "calls_cost", "context_window", "price", "rates"]
