"""Collected static files: compressed, and with a hash of their content in their names."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage

#: Matches `import "./x.js";`, `import { a } from "./x.js";` and `export … from` at the start of a line, even
#: if the statement spans several lines.
_IMPORT = (
    r"""(?m)^(?P<matched>(?P<names>(?:import|export)\s*(?:[\w\s{},*$]*\bfrom\s*)?)"(?P<url>\.[^"]+)";)""",
    '%(names)s"%(url)s";',
)


class HashedFiles(CompressedManifestStaticFilesStorage):
    """Rewrite the imports of JavaScript modules to hashed names, so that browsers never mix two versions.

    Django's `support_js_module_import_aggregation` would rewrite third-party libraries as well, and fails on
    the examples in their comments.
    """

    patterns = (*CompressedManifestStaticFilesStorage.patterns, ("js/*.js", (_IMPORT,)))
