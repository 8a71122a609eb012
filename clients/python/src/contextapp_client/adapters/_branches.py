"""The forks in which a conversation continues after its client went back to an earlier point.

contextapp returns the id of the fork that contains a history. A tag makes the fork known to other processes.
"""

from __future__ import annotations

from typing import Any

from contextapp_client.paging import pages
from contextapp_client.session import Session


def latest(session: Session) -> Session:
    """Return the session in which the conversation of `session` continued most recently."""
    found = _branches(session, session.info()["id"])
    return Session(session.transport, found[0]["id"]) if found else session


def mark(session: Session, branch_id: str) -> None:
    """Record that the conversation of `session` continues in the session `branch_id`."""
    tag = _tag(session.info()["id"])
    branch = Session(session.transport, branch_id)
    tags = branch.info()["tags"]
    if tag not in tags:
        branch.change_tags([*tags, tag])


def restart(session: Session) -> Session:
    """Delete the conversation with its branches, and return a new session with the same id and settings."""
    info: dict[str, Any] = dict(session.info())
    for branch in _branches(session, info["id"]):
        if branch["id"] != info["id"]:
            Session(session.transport, branch["id"]).delete()
    session.delete()
    names = ("model", "format", "agent", "title", "metadata", "policy", "parent")
    body = {name: info[name] for name in names if info.get(name)}
    body |= {"id": info["external_id"], "if_exists": "return"}
    body["tags"] = [tag for tag in info["tags"] if tag != _tag(info["id"])]
    body["budget"] = {"input_tokens": info["prompt"]["budget"]}
    session.transport.call("POST", "sessions", body=body, repeatable=True)
    return Session(session.transport, info["external_id"])


def _branches(session: Session, id: str) -> list[Any]:
    """Return the marked sessions, most recently active first."""
    return list(pages(session.transport, "sessions", query={"tag": _tag(id)}))


def _tag(id: str) -> str:
    return f"branch-of:{id}"
