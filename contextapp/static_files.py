"""Collected static files: each under a name with a hash of its content, and compressed."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage

#: `import "./x.js";`, `import { a } from "./x.js";` and `export … from` at the start of a line, over several
#: lines too.
_IMPORT = (
    r"""(?m)^(?P<matched>(?P<names>(?:import|export)\s*(?:[\w\s{},*$]*\bfrom\s*)?)"(?P<url>\.[^"]+)";)""",
    '%(names)s"%(url)s";',
)


class HashedFiles(CompressedManifestStaticFilesStorage):
    """Our modules import each other under their hashed names too: a browser never mixes two versions.

    Django's own `support_js_module_import_aggregation` would rewrite libraries as well, and stumbles over the
    examples in their comments.
    """

    patterns = (*CompressedManifestStaticFilesStorage.patterns, ("js/*.js", (_IMPORT,)))
