"""Templates without the indentation of their source."""

from __future__ import annotations

import re

from django.template.base import Origin
from django.template.loaders.filesystem import Loader

_INDENTATION = re.compile(r"^[ \t]+", re.MULTILINE)


class Unindented(Loader):
    """Remove the indentation of templates, which is a third of the size of most pages.

    Values in templates, such as the content of `<pre>`, keep theirs.
    """

    def get_contents(self, origin: Origin) -> str:
        return _INDENTATION.sub("", super().get_contents(origin))
