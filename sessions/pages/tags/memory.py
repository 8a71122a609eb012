"""Template filters for items of working memory."""

from __future__ import annotations

from django import template

from compaction.memory.diffs import Churn, Motion
from compaction.memory.origins import Author, Origin, Via
from compaction.memory.schema import title_of
from sessions.models import MemoryRevision

register = template.Library()

#: The maximum length of an item in the history.
_MAX_LENGTH = 200

_AUTHORS = {Author.MODEL: "model", Author.HARNESS: "automatic", Author.PERSON: "user"}

_ORIGINS = {
    Via.TOOL: "agent tool",
    Via.PAGE: "added manually",
    Via.AUTO_UPDATE: "auto-extracted",
    Via.EXTRACTION: "extracted by a model",
    Via.SHARED: "shared memory",
}

_CHURN_MEANINGS = {
    Churn.STEADY: "Long-term fields have not changed.",
    Churn.ADDITIVE: "Most changes to long-term fields only add items.",
    Churn.CHURNING: "More than half of the changes to long-term fields remove items.",
}

_MOTIONS = {Motion.STILL: "unchanged", Motion.ALIVE: "active"}


register.filter("field_title", title_of)


@register.filter
def author_label(author: str) -> str:
    """Return the label of an author, for example, “user”."""
    return _AUTHORS.get(Author(author), author)


@register.filter
def writer_label(row: MemoryRevision) -> str:
    """Return the name of the user who wrote a revision, or the label of its author."""
    return row.user.get_username() if row.user is not None else author_label(row.author)


@register.filter
def origin_label(origin: Origin) -> str:
    """Return an item's source, for example, “auto-extracted”. Items set over the API name their author."""
    return _ORIGINS.get(origin.via) or author_label(origin.author)


@register.filter
def motion_label(motion: Motion) -> str:
    """Return the label of a field's activity, for example, “unchanged”."""
    return _MOTIONS.get(motion, str(motion))


@register.filter
def churn_meaning(churn: Churn) -> str:
    """Return the explanation of a churn verdict for its tooltip."""
    return _CHURN_MEANINGS[churn]


@register.filter
def short(item: str) -> str:
    """Shorten an item to one line. A diff becomes its file name and the number of changed lines."""
    first, _, rest = item.partition("\n")
    if not rest:
        return first if len(first) <= _MAX_LENGTH else f"{first[: _MAX_LENGTH - 1]}…"
    lines = rest.splitlines()
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return f"{first[:_MAX_LENGTH]} (+{added} −{removed} lines)"
