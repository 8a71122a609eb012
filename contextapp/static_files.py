"""Collected static files: compressed, and with a hash of their content in their names."""

from __future__ import annotations

from typing import Any

from whitenoise.compress import Compressor
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
    the examples in their comments. Files under their original names are not kept, and source maps are not
    compressed: only developer tools read them, and they would take most of the time.
    """

    keep_only_hashed_files = True

    patterns = (*CompressedManifestStaticFilesStorage.patterns, ("js/*.js", (_IMPORT,)))

    def create_compressor(self, **options: Any) -> Compressor:
        uncompressed = (*Compressor.SKIP_COMPRESS_EXTENSIONS, "map")
        return Compressor(**options | {"extensions": uncompressed})  # type: ignore[no-untyped-call]
