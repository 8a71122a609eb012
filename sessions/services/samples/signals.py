"""Signals that let other apps add to the sample data, and remove what they added."""

from __future__ import annotations

from django.dispatch import Signal

#: All sessions are loaded. Arguments: `project`, `sessions` and `user`.
sample_loaded = Signal()

#: The sample data is about to be removed. Arguments: `project` and `sessions`, a list of ids.
sample_removing = Signal()
