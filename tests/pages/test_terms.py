"""The words of the pages: none stands there without what it means."""

from __future__ import annotations

from compaction.policy import PRESETS, STEPS
from compaction.triggers import TRIGGERS
from compaction.view import VERBATIM
from sessions.pages import terms
from sessions.services.compactions.recap_edit import TRIGGER


def test_every_preset_step_and_trigger_says_what_it_means():
    assert terms.PRESETS.keys() == PRESETS.keys()
    assert {*STEPS, VERBATIM} <= terms.RULES.keys()
    assert terms.FIRINGS.keys() == {*(trigger.NAME for trigger in TRIGGERS), TRIGGER}
