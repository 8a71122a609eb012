"""Store the segments of the search index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from uuid import UUID

from compaction.messages import Message
from search.documents import touched_files
from search.keys import project_salt, segment_keys
from search.segments import Header, segment_build
from sessions.selectors.search.documents import IndexedMessages, StoredSegment
from sessions.services.backlog import KEPT_SESSION, LEASE
from sessions.store.postgres import array_literal, row_fetch
from sessions.store.prepared import Prepared

#: Maximum number of files stored with a segment.
_MOST_FILES = 60

#: Moves the state of a session that is still claimed, and replaces segments with one that contains them. That
#: one is inserted after they are removed, because it has the first message of one of them. The keys are
#: thousands of numbers: as text, they take a fraction of the time.
_STORE = Prepared(
    "search_segment_store",
    f"""
WITH {KEPT_SESSION}, own AS (
    UPDATE agent_sessions_searchstate
       SET position = %(end)s,
           lease_until = CASE WHEN %(is_last)s THEN NULL
                              ELSE statement_timestamp() + make_interval(secs => %(lease)s) END
      FROM kept
     WHERE session_id = kept.id AND attempts = %(attempts)s
    RETURNING session_id
), removed_blocks AS (
    DELETE FROM agent_sessions_searchblock USING own WHERE segment_id = ANY(%(merged)s::bigint[])
), removed AS (
    DELETE FROM agent_sessions_searchsegment s USING own WHERE s.id = ANY(%(merged)s::bigint[])
    RETURNING s.id
), segment AS (
    INSERT INTO agent_sessions_searchsegment (
           project_id, session_id, first, "end", ended_at, header, keys, files)
    SELECT %(project)s, own.session_id, %(first)s, %(end)s,
           coalesce((SELECT at FROM agent_sessions_turn
                      WHERE session_id = own.session_id AND index = %(last_turn)s), statement_timestamp()),
           %(header)s, %(keys)s::int[], %(files)s::text[]
      FROM own, (SELECT count(*) FROM removed) AS done
    RETURNING id
), blocks AS (
    INSERT INTO agent_sessions_searchblock (segment_id, first_term, data)
    SELECT segment.id, block.term, block.data
      FROM segment, unnest(%(terms)s::bytea[], %(blocks)s::bytea[]) AS block (term, data)
)
SELECT id FROM segment
""",  # noqa: S608  a constant is inserted
    {
        **dict.fromkeys(("session", "project"), "uuid"),
        **dict.fromkeys(("end", "first", "last_turn", "attempts"), "int4"),
        **dict.fromkeys(("terms", "blocks"), "bytea[]"),
        "is_last": "bool",
        "lease": "float8",
        "merged": "int8[]",
        "header": "bytea",
        "keys": "text",
        "files": "text[]",
    },
)


def segment_store(
    batch: IndexedMessages, merged: Sequence[StoredSegment], *, project_id: UUID, attempts: int
) -> bool:
    """Store a batch of messages, merged with the segments before it, and release the session after the last.

    `attempts` identifies the claim. Return False if it was lost; nothing is stored then.
    """
    parts = [(Header.unpack(each.header), each.blocks) for each in merged]
    new = segment_build(batch.documents, after=parts)
    keys = segment_keys(project_salt(project_id), new)
    files = chain(_files(batch.messages), *(each.files for each in reversed(merged)))
    parameters = {
        "session": batch.session_id,
        "attempts": attempts,
        "is_last": batch.is_last,
        "lease": LEASE.total_seconds(),
        "merged": [each.id for each in merged],
        "project": project_id,
        "first": merged[0].first if merged else batch.first,
        "end": batch.end,
        "last_turn": batch.last_turn,
        "header": new.header.pack(),
        "keys": array_literal(keys),
        "files": list(dict.fromkeys(files))[:_MOST_FILES],
        "terms": [term for term, _ in new.blocks],
        "blocks": [data for _, data in new.blocks],
    }
    return row_fetch(_STORE, parameters) is not None


def _files(messages: Sequence[Message]) -> list[str]:
    """Return the files that the messages' tool calls touch, the most frequent first."""
    counted: Counter[str] = Counter()
    for message in messages:
        counted += touched_files(message)
    return [name for name, _ in counted.most_common()]
