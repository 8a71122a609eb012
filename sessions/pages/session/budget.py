"""The form that changes the token budget of a session."""

from __future__ import annotations

from typing import Any

from django import forms

from sessions.models import AgentSession
from sessions.pages.settings.common import PlainForm
from sessions.selectors.token_budgets import MAX_BUDGET, default_budget


class BudgetForm(PlainForm):
    """The session's own budget. Blank for the default."""

    tokens = forms.IntegerField(
        label="Budget in tokens",
        required=False,
        min_value=1,
        max_value=MAX_BUDGET,
        error_messages={
            "invalid": "Enter a whole number of tokens without separators or units, for example, 60000.",
            "min_value": "Enter at least 1 token, or leave the field blank for the default.",
            "max_value": f"Enter at most {MAX_BUDGET:,} tokens.",
        },
    )

    def __init__(self, session: AgentSession, data: Any = None) -> None:
        super().__init__(data, initial={"tokens": session.budget_tokens})
        self.fields["tokens"].widget.attrs["placeholder"] = f"Default: {default_budget(session):,}"
