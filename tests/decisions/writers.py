"""Finds every statement of the product that writes a fact of the candidate rules, in Python and in SQL files, and
whether it is told on in the same transaction (ACC-19).

A statement is an ``insert``, ``update`` or ``delete`` of SQLAlchemy, or the text of one. It is *told on* when the
function around it calls one of the names that do so for its table, inside the same transaction; or when the function is
private and each of its callers in that module does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lastcall.access.tables import Invite, JoinRequest
from lastcall.clubs.tables import Club
from lastcall.db.base import Base
from lastcall.decisions.approvals.tables import Approval
from lastcall.decisions.tables import Retention

SOURCE_FACTS = frozenset({"club_id", "id", "status", "activity_at", "archive_due_at"})

FACTS: dict[str, frozenset[str]] = {
    JoinRequest.__tablename__: SOURCE_FACTS | {"invite_id"},
    Approval.__tablename__: SOURCE_FACTS,
    Retention.__tablename__: frozenset({"club_id", "id", "keep", "archived_at", "revived_at"}),
    Club.__tablename__: frozenset({"id", "state", "retention_days"}),
    Invite.__tablename__: frozenset({"club_id", "id"}),
}
"""What the rules read (``<kind>_due``), and what they are found by: a change of it changes a deadline."""

NOTHING_HANGS_ON_A_NEW = frozenset({Club.__tablename__, Invite.__tablename__})
"""A row that is inserted here changes no deadline: nothing waits in it or by it yet."""

TOLD_BY: dict[str, frozenset[str]] = {
    JoinRequest.__tablename__: frozenset({"join_requests_changed", "join_requests_going"}),
    Approval.__tablename__: frozenset({"refresh"}),
    Retention.__tablename__: frozenset({"refresh"}),
    Club.__tablename__: frozenset({"club_changed"}),
    Invite.__tablename__: frozenset(),
}
"""The functions that derive and signal what follows, by the table that was written."""

ANY = "?"
"""A table or a column that the text does not name."""

VERBS = ("insert", "update", "delete")
TABLE_OF = {
    f"{mapper.class_.__module__}.{mapper.class_.__name__}": str(mapper.local_table)
    for mapper in Base.registry.mappers
}
ANY_FACT = frozenset().union(*FACTS.values())
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_STATEMENT = re.compile(
    r"\b(insert\s+into|update|delete\s+from|merge\s+into|truncate(?:\s+table)?|copy)\s+(?:only\s+)?"
    r"(?:public\.)?\"?([a-z_]+|\?)\"?(?![a-z_(])",
    re.IGNORECASE,
)
_SET = re.compile(r"\bset\b(.*?)(?:\bwhere\b|\bfrom\b|\breturning\b|;|$)", re.IGNORECASE | re.DOTALL)
_COLUMN = re.compile(r"(?:^|,)\s*\(?\s*\"?([a-z_]+|\?)\"?\s*(?:=|,|\))", re.IGNORECASE)


@dataclass(frozen=True, order=True)
class Writer:
    """A function, or an SQL file, that writes facts of ``table``."""

    place: str
    table: str
    is_told: bool


def writers(root: Path, *, leave_out: tuple[str, ...] = ()) -> set[Writer]:
    """Every writer below ``root``; ``leave_out`` names folders by how their path begins."""
    found: set[Writer] = set()
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name.startswith(leave_out):
            continue
        if path.suffix == ".sql":
            text = path.read_text(encoding="utf-8")
            found |= {Writer(name, table, is_told=False) for table in tables_in_sql(text)}
        elif path.suffix == ".py":
            found |= in_python(name, path.read_text(encoding="utf-8"))
    return found


def tables_in_sql(text: str) -> set[str]:
    """The watched tables whose facts this SQL writes."""
    sql = _COMMENT.sub(" ", text)
    found = set()
    for match in _STATEMENT.finditer(sql):
        verb, table = match[1].split()[0].lower(), match[2].lower()
        columns = _set_columns(sql[match.end() :]) if verb == "update" else {ANY}
        found |= {table} if _is_watched(table, columns) else set()
    return found


def in_python(name: str, text: str) -> set[Writer]:
    """The writers of one module."""
    module = _Module(name, ast.parse(text))
    return {
        Writer(f"{name}::{module.name_of(function)}", table, module.is_told(function, table, node))
        for function, node, table in module.statements()
    }


_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.ClassDef | ast.Module


class _Module:
    """One parsed module, with each node's parent."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name, self.tree = name, tree
        self.parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self.imported = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def statements(self) -> Iterator[tuple[_Scope, ast.AST, str]]:
        """Each statement that writes watched facts, with the function around it and its table."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                tables = self._of_call(node)
            elif isinstance(node, ast.Constant | ast.JoinedStr) and not isinstance(
                self.parents[node], ast.JoinedStr | ast.FormattedValue
            ):
                tables = set() if self._is_docstring(node) else tables_in_sql(_text_of(node))
            else:
                continue
            for table in tables:
                yield self._scope(node), node, table

    def _of_call(self, call: ast.Call) -> set[str]:
        called = _last_name(call.func)
        if called in ("copy_records_to_table", "copy_to_table") and call.args:
            first = call.args[0]
            table = first.value if isinstance(first, ast.Constant) else ANY
            return {str(table)} if _is_watched(str(table), {ANY}) else set()
        if not isinstance(call.func, ast.Name):
            return set()
        qualified = self.imported.get(called, "")
        if TABLE_OF.get(qualified) in FACTS:
            return {TABLE_OF[qualified]}  # a row object, which an ORM session would write
        room, _, verb = qualified.rpartition(".")
        if verb not in VERBS or not room.startswith("sqlalchemy") or not call.args:
            return set()
        table = self._table(call.args[0])
        if verb == "insert" and table in NOTHING_HANGS_ON_A_NEW and not self._may_update(call):
            return set()
        columns = self._written(call) if verb == "update" else {ANY}
        return {table} if _is_watched(table, columns) else set()

    def _table(self, of: ast.expr) -> str:
        if isinstance(of, ast.Attribute) and of.attr == "__table__":
            of = of.value
        return TABLE_OF.get(self.imported.get(_last_name(of), ""), ANY)

    def _may_update(self, call: ast.Call) -> bool:
        node: ast.AST = call
        while isinstance(node := self.parents[node], ast.Attribute | ast.Call):
            if isinstance(node, ast.Attribute) and node.attr == "on_conflict_do_update":
                return True
        return False

    def _written(self, call: ast.Call) -> set[str]:
        """The columns that the chain of calls around an ``update`` sets."""
        node: ast.AST = call
        columns: set[str] = set()
        has_values = False
        while isinstance(self.parents.get(node), ast.Attribute | ast.Call):
            node = self.parents[node]
            if isinstance(node, ast.Call) and _last_name(node.func) == "values":
                has_values = True
                columns |= {keyword.arg or ANY for keyword in node.keywords}
                columns |= {ANY} if node.args else set()
        return columns if has_values else {ANY}

    def is_told(self, scope: _Scope, table: str, node: ast.AST, seen: frozenset[str] = frozenset()) -> bool:
        """Whether what ``node`` writes is told on in its transaction."""
        if not isinstance(scope, _Function):
            return False
        around = self._transaction(node)
        for call in (one for one in ast.walk(scope) if isinstance(one, ast.Call)):
            if _last_name(call.func) in TOLD_BY.get(table, ()) and self._transaction(call) is around:
                return True
        if not scope.name.startswith("_") or scope.name in seen or around is not None:
            return False
        calls = [
            call
            for call in ast.walk(self.tree)
            if isinstance(call, ast.Call) and _last_name(call.func) == scope.name
        ]
        return bool(calls) and all(
            self.is_told(self._scope(call), table, call, seen | {scope.name}) for call in calls
        )

    def _transaction(self, node: ast.AST) -> ast.AST | None:
        """The outermost ``async with …transaction(…)`` around a node within its function; None for a caller's."""
        found = None
        scope = self._scope(node)
        while node is not scope and node in self.parents:
            node = self.parents[node]
            if isinstance(node, ast.AsyncWith) and any(
                isinstance(item.context_expr, ast.Call)
                and _last_name(item.context_expr.func) in ("transaction", "_held")
                for item in node.items
            ):
                found = node
        return found

    def _scope(self, node: ast.AST) -> _Scope:
        while not isinstance(node, _Function | ast.Module):
            node = self.parents[node]
        return node

    def name_of(self, scope: _Scope) -> str:
        if isinstance(scope, ast.Module):
            return "(module)"
        around = self.parents.get(scope)
        return f"{around.name}.{scope.name}" if isinstance(around, ast.ClassDef) else scope.name

    def _is_docstring(self, node: ast.AST) -> bool:
        return isinstance(self.parents[node], ast.Expr)


def _is_watched(table: str, columns: set[str]) -> bool:
    facts = ANY_FACT if table == ANY else FACTS.get(table, frozenset())
    return bool(facts) and bool(columns & (facts | {ANY}))


def _set_columns(rest: str) -> set[str]:
    match = _SET.search(rest)
    if match is None:
        return set()  # “for update”, “on conflict do update set” of an insert that counts by itself
    flat = re.sub(r"\([^()]*\)", "0", match[1])
    while "(" in flat and flat != (flat := re.sub(r"\([^()]*\)", "0", flat)):
        pass
    return set(_COLUMN.findall(flat)) or {ANY}


def _text_of(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(str(part.value) if isinstance(part, ast.Constant) else ANY for part in node.values)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
