"""Operations of the agent's tool on single items: add, replace, resolve, remove, confirm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from compaction.errors import WorkingMemoryError
from compaction.memory.origins import Key, without
from compaction.memory.schema import PLAIN, Schema, Value
from compaction.memory.values import WorkingMemory


class Op(StrEnum):
    ADD = "add"
    REPLACE = "replace"
    RESOLVE = "resolve"  #: the item is done: a question answered, a blocker removed
    REMOVE = "remove"  #: the item was wrong or is no longer useful
    CONFIRM = "confirm"  #: the item is valid even though it was marked stale


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One change to one item. `new` is the text that replaces it."""

    op: Op
    field: str
    item: str
    new: str = ""

    @classmethod
    def from_json(cls, data: Any) -> Operation:
        """Parse an operation. Raises WorkingMemoryError."""
        if not isinstance(data, Mapping):
            raise WorkingMemoryError("operations", "an operation must be an object")
        name = data.get("op")
        if name not in list(Op):
            raise WorkingMemoryError("op", f"unknown operation {name!r}; known: {', '.join(Op)}")
        op = Op(name)
        return cls(
            op=op,
            field=_text(data, "field"),
            item=_text(data, "item"),
            new=_text(data, "with") if op is Op.REPLACE else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Operated:
    """The memory after some operations, and the items that they resolved and confirmed."""

    memory: WorkingMemory
    resolved: tuple[Key, ...] = ()
    confirmed: tuple[Key, ...] = ()


def operate(memory: WorkingMemory, operations: Sequence[Operation], schema: Schema = PLAIN) -> Operated:
    """Apply all operations in order. Raises WorkingMemoryError if one is invalid, without applying any."""
    for operation in operations:
        memory = _operated(memory, operation, schema)
    return Operated(
        memory=memory, resolved=_of(Op.RESOLVE, operations), confirmed=_of(Op.CONFIRM, operations)
    )


def _of(op: Op, operations: Sequence[Operation]) -> tuple[Key, ...]:
    return tuple((operation.field, operation.item) for operation in operations if operation.op is op)


def _operated(memory: WorkingMemory, operation: Operation, schema: Schema) -> WorkingMemory:
    name, item = operation.field, operation.item
    if name not in schema.names:
        raise WorkingMemoryError(name, f"unknown field; known: {', '.join(schema.names)}")
    if operation.op is Op.CONFIRM:
        _check_exists(memory, name, item)
        return memory
    current = memory.value(name)
    value: Value = schema.value(name, None) if current is None else current
    if isinstance(value, str):
        new = {Op.ADD: item, Op.REPLACE: operation.new}.get(operation.op, "")
        return memory.patched({name: new}, schema)
    if operation.op is Op.ADD:
        return memory.patched({name: [*value, item] if item not in value else [*value]}, schema)
    _check_exists(memory, name, item)
    if operation.op is Op.REPLACE:
        at = value.index(item)
        return memory.patched({name: [*value[:at], operation.new, *value[at + 1 :]]}, schema)
    return memory.patched({name: [*without(value, item)]}, schema)


def _check_exists(memory: WorkingMemory, name: str, item: str) -> None:
    if item not in memory.items(name):
        raise WorkingMemoryError(name, f"no item {item!r}")


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not value.strip():
        raise WorkingMemoryError(name, "must be a non-empty string")
    return value.strip()
