"""Object storage for large contents in an S3-compatible bucket."""

from __future__ import annotations

from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError
from django.core.files.base import ContentFile, File
from storages.backends.s3 import S3Storage

#: By default, a request to a bucket that does not respond takes five minutes, and all threads of the web
#: server soon wait for it. These settings end it well before the deadline of the request.
_LIMITS = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})


class BlobBucket(S3Storage):  # type: ignore[misc]
    """Storage in a bucket. Reads an object with one request, and distinguishes a missing bucket."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.client_config: Config = self.client_config.merge(_LIMITS)

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        try:
            body = self.bucket.Object(self._normalize_name(name)).get()["Body"]
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchKey":
                raise FileNotFoundError(name) from error
            raise
        with body:
            return ContentFile(body.read(), name)
