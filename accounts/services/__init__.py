"""All writes to accounts. Important changes are recorded in the audit log."""

from accounts.services.api_keys import api_key_create, api_key_revoke, api_key_use_record
from accounts.services.audit import audit_record
from accounts.services.bootstrap import FirstStart, bootstrap
from accounts.services.projects import project_create, project_update

__all__ = [
    "FirstStart",
    "api_key_create",
    "api_key_revoke",
    "api_key_use_record",
    "audit_record",
    "bootstrap",
    "project_create",
    "project_update",
]
