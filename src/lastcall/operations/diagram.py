"""The page ``docs/explanation/operation-states.md``, made from the machine's table.

``python -m lastcall.operations.diagram`` prints it; a test fails when the page is not what this makes.
"""

from __future__ import annotations

import sys

from lastcall.operations.codes import REASONS
from lastcall.operations.machine import REFUSALS, TERMINAL, TRANSITIONS, State

_HEAD = """\
# The states of an operation

Made from `src/lastcall/operations/machine.py` by `python -m lastcall.operations.diagram`.

An operation is one reviewed write for one target. It is sent at most once: the row says *submitted* before
the write leaves, and from there it never goes back. When nobody can tell what became of the write, the row
says *Outcome unknown* and stays so; a person settles it with evidence, and nothing is sent again.
"""


def page() -> str:
    """The whole page as Markdown."""
    return "\n".join([_HEAD, *_diagram(), "", *_table(), "", *_refusals()]) + "\n"


def _diagram() -> list[str]:
    lines = ["```mermaid", "stateDiagram-v2"]
    for move in TRANSITIONS:
        source = "[*]" if move.source is None else move.source.value
        lines += [
            f"    {source} --> {target.value}: {move.event.value}"
            for target in State
            if target in move.targets
        ]
    lines += [f"    {state.value} --> [*]" for state in State if state in TERMINAL]
    return [*lines, "```"]


def _table() -> list[str]:
    lines = ["| from | event | to | guard |", "| --- | --- | --- | --- |"]
    for move in TRANSITIONS:
        source = "(new)" if move.source is None else move.source.value
        targets = ", ".join(target.value for target in State if target in move.targets)
        lines.append(f"| {source} | {move.event.value} | {targets} | {move.guard} |")
    words = ", ".join(f"{state.value} is *{state.label}*" for state in State)
    return [*lines, "", f"Pages show the states in words: {words}."]


def _refusals() -> list[str]:
    lines = [
        "## When the last check refuses",
        "",
        "Authorization judges everything anew, after it has taken its locks. A refusal has its own code:",
        "",
        "| code | the row becomes | what pages say |",
        "| --- | --- | --- |",
    ]
    for code, state in REFUSALS.items():
        lines.append(f"| `{code}` | {state.value if state else 'unchanged'} | {REASONS[code].label} |")
    return lines


if __name__ == "__main__":
    sys.stdout.write(page())
