"""The calibration of a session that has not reported usage yet."""

from __future__ import annotations

from msgspec.structs import replace

from sessions.selectors.token_budgets import budget_tokens, calibration_initial
from sessions.services.push.values import Push, SessionState


def calibrated(state: SessionState, push: Push) -> SessionState:
    """Return the state with the calibration for the push's model, if the session has reported no usage yet.

    Reads the calibrations of other sessions, at most once for each model.
    """
    if not reads_calibration(state, push):
        return state
    calibration = calibration_initial(
        project_id=state.project_id,
        model=push.model,
        agent=state.agent,
        budget=budget_tokens(own=state.budget_tokens, context_window=state.context_window, model=push.model),
    )
    return replace(state, calibration=calibration)


def reads_calibration(state: SessionState, push: Push) -> bool:
    """Return whether the push needs the calibrations of other sessions."""
    return bool(push.model) and push.model != state.model and not state.calibration.reports
