"""The forks in which a conversation continues after its client went back to an earlier point.

contextapp returns the id of the fork that contains a history. A tag makes the fork known to other processes.
"""

from __future__ import annotations

from typing import Any

from contextapp_client.calls import Pages
from contextapp_client.session import AnySession, SessionCalls
from contextapp_client.steps import Steps


def latest(session: AnySession) -> Steps[AnySession]:
    """Return the session in which the conversation of `session` continued most recently."""
    info = yield from SessionCalls.info(session)
    found = yield from _branches(session, info["id"])
    return _with_id(session, found[0]["id"]) if found else session


def mark(session: AnySession, branch_id: str) -> Steps[None]:
    """Record that the conversation of `session` continues in the session `branch_id`."""
    info = yield from SessionCalls.info(session)
    tag = _tag(info["id"])
    branch = _with_id(session, branch_id)
    tags = (yield from SessionCalls.info(branch))["tags"]
    if tag not in tags:
        yield from SessionCalls.change_tags(branch, [*tags, tag])


def restart(session: AnySession) -> Steps[AnySession]:
    """Delete the conversation with its branches, and return a new session with the same id and settings."""
    info: dict[str, Any] = dict((yield from SessionCalls.info(session)))
    for branch in (yield from _branches(session, info["id"])):
        if branch["id"] != info["id"]:
            yield from SessionCalls.delete(_with_id(session, branch["id"]))
    yield from SessionCalls.delete(session)
    names = ("model", "format", "agent", "title", "metadata", "policy", "parent")
    body = {name: info[name] for name in names if info.get(name)}
    body |= {"id": info["external_id"], "if_exists": "return"}
    body["tags"] = [tag for tag in info["tags"] if tag != _tag(info["id"])]
    body["budget"] = {"input_tokens": info["prompt"]["budget"]}
    yield from session.transport.call("POST", "sessions", body=body, repeatable=True)
    return _with_id(session, info["external_id"])


def _branches(session: AnySession, id: str) -> Steps[list[Any]]:
    """Return the marked sessions, most recently active first."""
    found: Pages[Any] = Pages(session.transport, ("sessions",), {"tag": _tag(id)})
    return found.items()


def _with_id(session: AnySession, id: str) -> AnySession:
    return type(session)(session.transport, id)


def _tag(id: str) -> str:
    return f"branch-of:{id}"
