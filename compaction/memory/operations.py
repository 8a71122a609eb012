"""What the agent's tool does to a memory, item by item: add, replace, resolve, remove, confirm."""

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
    RESOLVE = "resolve"  #: it is settled: a question answered, a blocker gone
    REMOVE = "remove"  #: it was wrong, or is no longer of use
    CONFIRM = "confirm"  #: it still holds, though it was called stale


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One change of one item. `new` is the text that replaces it."""

    op: Op
    field: str
    item: str
    new: str = ""

    @classmethod
    def from_json(cls, data: Any) -> Operation:
        """Raises WorkingMemoryError."""
        if not isinstance(data, Mapping):
            raise WorkingMemoryError("operations", "an operation must be an object")
        name = data.get("op")
        if name not in list(Op):
            raise WorkingMemoryError("op", f"no operation {name!r}; there are: {', '.join(Op)}")
        op = Op(name)
        return cls(
            op=op,
            field=_text(data, "field"),
            item=_text(data, "item"),
            new=_text(data, "with") if op is Op.REPLACE else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Operated:
    """What operations made of a memory, and the items that they settled and confirmed."""

    memory: WorkingMemory
    resolved: tuple[Key, ...] = ()
    confirmed: tuple[Key, ...] = ()


def operate(memory: WorkingMemory, operations: Sequence[Operation], schema: Schema = PLAIN) -> Operated:
    """All operations one after the other. Raises WorkingMemoryError, and then none counts."""
    for operation in operations:
        memory = _operated(memory, operation, schema)
    return Operated(
        memory=memory, resolved=_of(Op.RESOLVE, operations), confirmed=_of(Op.CONFIRM, operations)
    )


def _of(op: Op, operations: Sequence[Operation]) -> tuple[Key, ...]:
    return tuple((one.field, one.item) for one in operations if one.op is op)


def _operated(memory: WorkingMemory, operation: Operation, schema: Schema) -> WorkingMemory:
    name, item = operation.field, operation.item
    if name not in schema.names:
        raise WorkingMemoryError(name, f"no field {name!r}; there are: {', '.join(schema.names)}")
    if operation.op is Op.CONFIRM:
        _check_there(memory, name, item)
        return memory
    current = memory.value(name)
    value: Value = schema.value(name, None) if current is None else current
    if isinstance(value, str):
        new = {Op.ADD: item, Op.REPLACE: operation.new}.get(operation.op, "")
        return memory.patched({name: new}, schema)
    if operation.op is Op.ADD:
        return memory.patched({name: [*value, item] if item not in value else [*value]}, schema)
    _check_there(memory, name, item)
    if operation.op is Op.REPLACE:
        at = value.index(item)
        return memory.patched({name: [*value[:at], operation.new, *value[at + 1 :]]}, schema)
    return memory.patched({name: [*without(value, item)]}, schema)


def _check_there(memory: WorkingMemory, name: str, item: str) -> None:
    if item not in memory.items(name):
        raise WorkingMemoryError(name, f"{name} has no item {item!r}")


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not value.strip():
        raise WorkingMemoryError(name, f"`{name}` must be a text")
    return value.strip()
