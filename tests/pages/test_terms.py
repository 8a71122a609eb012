"""The words of the pages: none stands there without what it means."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import compaction.triggers
from compaction.policy import PRESETS, STEPS
from compaction.view import VERBATIM
from sessions.pages import terms
from sessions.services.recap_edit import TRIGGER


def test_every_preset_step_and_trigger_says_what_it_means():
    names = [module.name for module in iter_modules(compaction.triggers.__path__)]
    modules = [import_module(f"compaction.triggers.{name}") for name in names]
    triggers = {module.NAME for module in modules if hasattr(module, "NAME")}
    assert terms.PRESETS.keys() == PRESETS.keys()
    assert {*STEPS, VERBATIM} <= terms.RULES.keys()
    assert terms.TRIGGERS.keys() == {*triggers, TRIGGER}
