"""A function that ends its process, in a separate module, which other processes import quickly."""

from __future__ import annotations

import os


def die(_call: object) -> None:
    os._exit(1)
