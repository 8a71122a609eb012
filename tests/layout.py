"""The layout of the code, derived from its source: files, entries, imports and database writes."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]

#: Methods of managers, querysets and model instances that write, whatever they are called on.
_WRITES = {
    "bulk_create",
    "bulk_update",
    "create",
    "create_superuser",
    "create_user",
    "delete",
    "get_or_create",
    "save",
    "update_or_create",
}
_READS = {"all", "annotate", "exclude", "filter", "order_by", "select_for_update"}
_WRITING_SQL = re.compile(r"\b(INSERT INTO|DELETE FROM|UPDATE\s+\w+(\s+\w+)?\s+SET|COPY\s+\S+.*FROM STDIN)\b")


def sources(packages: Iterable[str]) -> list[Path]:
    """Return the Python files of the packages, without migrations, relative to the root."""
    files = (file for package in packages for file in (ROOT / package).rglob("*.py"))
    return sorted(file.relative_to(ROOT) for file in files if "migrations" not in file.parts)


def database_writes(source: str) -> Iterator[tuple[int, str]]:
    """Return line and text of each expression that writes to the database."""
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = set(_docstrings(nodes))
    querysets = {name for node in nodes for name in _queryset_names(node)}
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_write(node, querysets):
            yield node.lineno, ast.unparse(node.func)
        elif isinstance(node, ast.Constant) and node not in docstrings:
            yield from ((node.lineno, found[0]) for found in _WRITING_SQL.finditer(str(node.value)))


def _docstrings(nodes: Iterable[ast.AST]) -> Iterator[ast.Constant]:
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _queryset_names(node: ast.AST) -> Iterator[str]:
    """Return the names that are assigned a queryset."""
    if isinstance(node, ast.Assign) and _is_queryset(node.value, set()):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _is_write(call: ast.Call, querysets: Set[str]) -> bool:
    """Return whether this is a write. `update` is one on a queryset only: dicts and counters have it too."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr == "update":
        return _is_queryset(call.func.value, querysets)
    return call.func.attr in _WRITES


def _is_queryset(node: ast.expr, querysets: Set[str]) -> bool:
    """Return whether an expression is a manager or queryset, as far as its text shows."""
    if isinstance(node, ast.Name):
        return node.id in querysets
    if isinstance(node, ast.Attribute):
        return node.attr == "objects"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _READS or _is_queryset(node.func.value, querysets)
    return isinstance(node, ast.Subscript) and _is_queryset(node.value, querysets)


def package_cycles(roots: Iterable[str]) -> list[list[str]]:
    """Return the groups of sibling modules and packages that import each other, at every level."""
    graph = grimp.build_graph(*roots)
    edges: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            importer, other = module.split("."), imported.split(".")
            depth = next((at for at, (a, b) in enumerate(zip(importer, other, strict=False)) if a != b), None)
            if depth is not None:  # neither contains the other
                siblings = edges[".".join(importer[:depth])]
                siblings[".".join(importer[: depth + 1])].add(".".join(other[: depth + 1]))
    return [cycle for group in edges.values() for cycle in _cycles(group)]


def _cycles(edges: Mapping[str, Set[str]]) -> list[list[str]]:
    """Return the groups of names that reach each other, by Tarjan's algorithm."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for other in edges.get(name, ()):
            if other not in order:
                visit(other)
            if other in stack:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == order[name]:
            start = stack.index(name)
            group = stack[start:]
            del stack[start:]
            if len(group) > 1:
                found.append(sorted(group))

    for name in edges:
        if name not in order:
            visit(name)
    return found
