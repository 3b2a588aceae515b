"""Each contract clause that this release claims has a test that marks it; no test marks a clause that does
not exist.

The clause table is docs/reference/clauses.md; what is claimed so far is the list in
docs/reference/kept-clauses.txt.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

TABLE = Path("docs/reference/clauses.md")
KEPT = Path("docs/reference/kept-clauses.txt")
MOST_MARKS = 3


def known() -> set[str]:
    return set(re.findall(r"^\| ([A-Z]{3}-\d\d) ", TABLE.read_text(encoding="utf-8"), re.MULTILINE))


def marks(node: ast.AST) -> list[str]:
    found: list[str] = []
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "clause":
            found += [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    return found


def main() -> int:
    tested: dict[str, list[str]] = defaultdict(list)
    complaints: list[str] = []
    for path in sorted(Path("tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for clause in marks(tree):
            tested[clause].append(str(path))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                count = sum(len(marks(decorator)) for decorator in node.decorator_list)
                if count > MOST_MARKS:
                    complaints.append(
                        f"{path}:{node.lineno} {node.name} marks {count} clauses; at most {MOST_MARKS}."
                    )
    clauses = known()
    complaints += [
        f"{clause} is marked in {files[0]} but stands in no table."
        for clause, files in tested.items()
        if clause not in clauses
    ]
    kept = KEPT.read_text(encoding="utf-8").split()
    complaints += [
        f"{clause} is claimed in {KEPT} but no test marks it." for clause in kept if clause not in tested
    ]
    complaints += [
        f"{clause} is claimed in {KEPT} but stands in no table." for clause in kept if clause not in clauses
    ]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{len(kept)} clauses claimed, {len(tested)} marked by tests, {len(clauses)} in the table.")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
