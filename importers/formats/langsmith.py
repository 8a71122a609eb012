"""Runs that were exported from LangSmith: with its SDK, from its API, or as rows of a bulk export.

A value is a run, a page of the API (`runs` or `items`), or a list of these. A run may contain its children
(`child_runs`). Runs of the type `llm` are model calls. The calls of a thread, or of a trace without one, are
a session here. The two versions of the API differ in the names of some fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compaction.messages import Usage
from importers.base import Damage, ImportedSession, LogFile
from importers.calls import LoggedCall
from importers.chat import chat_usage
from importers.formats.traced_calls import TracedExport, TracedSession, TraceFacts, latency_ms
from importers.formats.traced_messages import answer_of_call, parsed, request_of_call
from importers.jsonlines import first_value
from importers.values import disjoint_usage, list_of, mapping_of, microusd_of, time_of, tokens_of

_TYPES = ("llm", "chain", "tool", "retriever", "embedding", "prompt", "parser")

#: Keys of the list of runs in a page. The two versions of the API have different ones.
_PAGES = ("runs", "items")

#: Keys that LangSmith recognizes as the id of a thread in the metadata of a run.
_THREAD = ("session_id", "thread_id", "conversation_id")

#: Keys that contain JSON as text in a bulk export.
_JSON = ("inputs", "outputs", "extra", "metadata", "tags", "prompt_token_details")

#: Keys of cache writes in LangChain's token details. Newer versions split them by time to live.
_WRITES = ("cache_creation", "cache_write", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")


class LangSmithImporter:
    """Reads exports of LangSmith."""

    name = "langsmith"
    label = "LangSmith runs (JSON or JSONL)"

    def recognizes(self, log: LogFile) -> bool:
        return _is_export(first_value(log))

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        return _Export().read(log)


class _Export(TracedExport):
    noun, expected, start_key = "run", "a run", "start_time"

    def take(self, value: Any, line: int) -> None:
        """Read a run with its children, or each run of a list."""
        runs = value if isinstance(value, list) else _page(value)
        if runs is not None:
            self.take_all(runs, line)
            return
        run = {**value, **{key: parsed(value[key]) for key in _JSON if key in value}}
        id, kind = _id(run), str(run["run_type"]).lower()
        ancestors = [run.get("parent_run_id"), *list_of(run.get("parent_run_ids"))]
        if kind == "llm":
            self.add_call(id, run, line, parents=ancestors)
        if not any(ancestors):
            self.traces[str(run.get("trace_id") or id)] = run
        self.take_all(list_of(run.get("child_runs")), line)

    def session_of(self, call: Mapping[str, Any]) -> str:
        return _thread(call) or _thread(self._root(call)) or str(call.get("trace_id") or "")

    def add_to(self, session: TracedSession, call: Mapping[str, Any]) -> None:
        root = self._root(call)
        name, tags = str(root.get("name") or ""), [str(tag) for tag in list_of(root.get("tags"))]
        session.add(*_call(call), TraceFacts(title=name, tags=tags, metadata={"trace": name} if name else {}))

    def _root(self, run: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.traces.get(str(run.get("trace_id")), {})


def _is_export(value: Any) -> bool:
    runs = value if isinstance(value, list) else _page(value)
    if runs is not None:
        return bool(runs) and _is_run(runs[0])
    return _is_run(value)


def _is_run(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and str(value.get("run_type")).lower() in _TYPES
        and not {"trace_id", "dotted_order", "inputs"}.isdisjoint(value)
    )


def _page(value: Any) -> list[Any] | None:
    """Return the runs of a page, or None if the value is not a page."""
    pages = (
        (value.get(key) for key in _PAGES) if isinstance(value, Mapping) and "run_type" not in value else ()
    )
    return next((page for page in pages if isinstance(page, list)), None)


def _id(run: Mapping[str, Any]) -> str:
    return str(run["id"] if run.get("id") else run["run_id"])


def _thread(run: Mapping[str, Any]) -> str:
    metadata = mapping_of(run.get("metadata")) or mapping_of(mapping_of(run.get("extra")).get("metadata"))
    found = (run.get("thread_id"), *(metadata.get(key) for key in _THREAD))
    return next((str(id) for id in found if id), "")


def _call(run: Mapping[str, Any]) -> tuple[Any, LoggedCall]:
    """Return the request and the call of a run. Raises one of `MALFORMED`."""
    extra, outputs = mapping_of(run.get("extra")), mapping_of(run.get("outputs"))
    invocation = mapping_of(extra.get("invocation_params"))
    metadata = mapping_of(run.get("metadata")) or mapping_of(extra.get("metadata"))
    inputs = dict(mapping_of(run.get("inputs")))
    sent = {
        "messages": _messages(inputs.get("messages") or inputs.get("prompts") or inputs.pop("input", None)),
        "tools": inputs.get("tools") or inputs.get("functions") or invocation.get("tools"),
    }
    inputs.update((key, value) for key, value in sent.items() if value)
    request = request_of_call(inputs)
    generation = _generation(outputs)
    message = _message(generation.get("message") or generation.get("text") or None)
    answer = message if generation else outputs.get("messages") or outputs
    response = mapping_of(mapping_of(message).get("response_metadata"))
    models = (
        response.get("model_name"),
        outputs.get("model"),
        mapping_of(outputs.get("llm_output")).get("model_name"),
        metadata.get("ls_model_name"),
        inputs.get("model"),
        invocation.get("model"),
    )
    start, first = time_of(run.get("start_time")), time_of(run.get("first_token_time"))
    return request, LoggedCall(
        messages=request.messages,
        answer=answer_of_call(answer) if answer else None,
        model=next((str(model) for model in models if model), ""),
        usage=_usage(run, outputs, mapping_of(message)),
        response_id=str(outputs.get("id") or response.get("id") or f"langsmith-{_id(run)}"),
        cost_microusd=microusd_of(run.get("total_cost")) or None,
        at=start,
        first_token_ms=latency_ms(start, first),
        duration_ms=latency_ms(start, time_of(run.get("end_time"))),
    )


def _messages(messages: Any) -> Any:
    """Return the messages of a request. LangChain records a list of requests; the first one is used."""
    if not isinstance(messages, list):
        return messages
    batch = messages[0] if messages and isinstance(messages[0], list) else messages
    return [_message(each) for each in batch]


def _message(message: Any) -> Any:
    """Return a message. LangChain serializes its messages as the arguments of their class."""
    if isinstance(message, Mapping) and "lc" in message and "kwargs" in message:
        kind = str((list_of(message.get("id")) or [""])[-1]).removesuffix("Chunk").removesuffix("Message")
        return {"type": kind.lower(), **message["kwargs"]}
    return message


def _generation(outputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first answer in the outputs of LangChain."""
    generations = list_of(outputs.get("generations"))
    first = generations[0] if generations else None
    return mapping_of(first[0] if isinstance(first, list) and first else first)


def _usage(run: Mapping[str, Any], outputs: Mapping[str, Any], message: Mapping[str, Any]) -> Usage | None:
    """Return the usage. Its input contains the cached tokens."""
    usage = mapping_of(outputs.get("usage_metadata")) or mapping_of(message.get("usage_metadata"))
    details = mapping_of(usage.get("input_token_details"))
    total, output = tokens_of(usage, "input_tokens"), tokens_of(usage, "output_tokens")
    if not total and tokens_of(run, "prompt_tokens"):
        details = mapping_of(run.get("prompt_token_details"))
        details = mapping_of(details.get("raw")) or details
        total, output = tokens_of(run, "prompt_tokens"), tokens_of(run, "completion_tokens")
    if not total:
        return chat_usage(outputs.get("usage") or mapping_of(outputs.get("llm_output")).get("token_usage"))
    read, write = tokens_of(details, "cache_read"), sum(tokens_of(details, key) for key in _WRITES)
    return disjoint_usage(uncached=max(total - read - write, 0), read=read, write=write, output=output)
