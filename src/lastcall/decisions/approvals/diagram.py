"""The page ``docs/explanation/approval-states.md``, made from the machine's table.

``python -m lastcall.decisions.approvals.diagram`` prints it; a test fails when the page is not what this makes.
"""

from __future__ import annotations

import sys

from lastcall.decisions.approvals.machine import OPEN, TRANSITIONS, Status

_HEAD = """\
# The states of an approval

Made from `src/lastcall/decisions/approvals/machine.py` by `python -m lastcall.decisions.approvals.diagram`.

An [approval](approvals.md) is a question that waits for a yes or a no. Whoever decides it decides the revision
that they read.
"""


def page() -> str:
    """The whole page as Markdown."""
    return "\n".join([_HEAD, *_diagram(), "", *_table()]) + "\n"


def _diagram() -> list[str]:
    moves = [f"    {move.source or '[*]'} --> {move.target}: {move.event}" for move in TRANSITIONS]
    ends = [f"    {status} --> [*]" for status in Status if status not in OPEN]
    return ["```mermaid", "stateDiagram-v2", *moves, *ends, "```"]


def _table() -> list[str]:
    lines = ["| from | event | to | who, and when | the asker is told |", "| --- | --- | --- | --- | --- |"]
    for move in TRANSITIONS:
        told = f"`{move.told}`" if move.told else "no, it is their own act"
        lines.append(f"| {move.source or '(new)'} | {move.event} | {move.target} | {move.guard} | {told} |")
    words = ", ".join(f"{status} is *{status.label}*" for status in Status)
    return [*lines, "", f"Pages show the states in words: {words}."]


if __name__ == "__main__":
    sys.stdout.write(page())
