"""The storage of large contents outside Postgres."""

from __future__ import annotations

from typing import Any

from contextapp import env


def blob_storage() -> dict[str, Any]:
    """Return the entry for Django's STORAGES: a folder, a bucket, or none to store contents in Postgres.

    Credentials for a bucket come from the usual AWS_* variables.
    """
    kind = env.choice("CONTEXTAPP_BLOB_STORAGE", ("file", "s3"))
    if kind == "file":
        folder = env.text("CONTEXTAPP_BLOB_FOLDER") or env.home() / "blobs"
        options: dict[str, Any] = {"location": folder, "allow_overwrite": True}
        return {"blobs": {"BACKEND": "sessions.store.blobs.BlobFolder", "OPTIONS": options}}
    if kind == "s3":
        options = {
            "bucket_name": env.text("CONTEXTAPP_BLOB_BUCKET"),
            "endpoint_url": env.web_url("CONTEXTAPP_BLOB_ENDPOINT") or None,
            "file_overwrite": True,
            "querystring_auth": False,
        }
        if not options["bucket_name"]:
            raise env.InvalidVariable("CONTEXTAPP_BLOB_BUCKET is not set.")
        return {"blobs": {"BACKEND": "sessions.store.blob_bucket.BlobBucket", "OPTIONS": options}}
    return {}
