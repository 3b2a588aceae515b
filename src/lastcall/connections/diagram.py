"""The page ``docs/explanation/connection-states.md``, made from the tables of ``transitions.py``.

``python -m lastcall.connections.diagram`` prints it; a test fails when the page is not what this makes.
"""

from __future__ import annotations

import sys
from collections import defaultdict

from lastcall.connections.states import PASSABLE, USABLE, ConnectionState, JoinPolicy
from lastcall.connections.transitions import MOVES, TRANSITIONS, Standing

_HEAD = """\
# The states of a connection

Made from `src/lastcall/connections/transitions.py` by `python -m lastcall.connections.diagram`.

A collector reports what VRChat says its account is to the group; the server alone says which state follows. Only who is
*connecting* joins by itself. Whoever was let in once and is out again waits for an invitation, or for a person who says
that it may try again: who removed it may have meant it. Not drawn are two moves that every state but the last two can
make: another account takes over, and somebody disconnects.
"""


def page() -> str:
    """The whole page as Markdown."""
    return "\n".join([_HEAD, *_diagram(), "", *_states(), "", *_looks(), "", *_moves()]) + "\n"


def _edges() -> dict[tuple[ConnectionState, ConnectionState], list[str]]:
    """Every change of state with what makes it; the moves that nearly every state can make are told in the table."""
    found: dict[tuple[ConnectionState, ConnectionState], list[str]] = defaultdict(list)
    for (state, standing, _), to in TRANSITIONS.items():
        if to is not state and standing.value not in found[state, to]:
            found[state, to].append(standing.value)
    for move in MOVES:
        if len(move.leaves) < len(PASSABLE):
            for state in ConnectionState:
                if state in move.leaves:
                    found[state, move.to].append(move.event)
    return {edge: why for edge, why in found.items() if why}


def _diagram() -> list[str]:
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {ConnectionState.CONNECTING.value}: connect"]
    lines += [f"    {state.value} --> {to.value}: {', '.join(why)}" for (state, to), why in _edges().items()]
    return [*lines, f"    {ConnectionState.DISCONNECTED.value} --> [*]", "```"]


def _states() -> list[str]:
    lines = [
        "| state | in words | operations and reads | a collector looks, joins or leaves |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {one.value} | {one.label} | {'yes' if one in USABLE else 'no'} | {'yes' if one in PASSABLE else 'no'} |"
        for one in ConnectionState
    ]
    return lines


def _looks() -> list[str]:
    lines = [
        "## What a look leads to",
        "",
        "| the account is | from connecting | from waiting, active or degraded |",
        "| --- | --- | --- |",
    ]
    for standing in Standing:
        first = {
            policy: TRANSITIONS[ConnectionState.CONNECTING, standing, policy].value for policy in JoinPolicy
        }
        later = TRANSITIONS[ConnectionState.ACTIVE, standing, JoinPolicy.UNKNOWN].value
        lines.append(f"| {standing.value} | {_by_policy(first)} | {later} |")
    return lines


def _by_policy(to: dict[JoinPolicy, str]) -> str:
    policies: dict[str, list[str]] = defaultdict(list)
    for policy, state in to.items():
        policies[state].append(policy.value)
    if len(policies) == 1:
        return next(iter(policies))
    return "; ".join(
        f"{state} (the group's join policy is {', '.join(some)})" for state, some in policies.items()
    )


def _moves() -> list[str]:
    lines = ["## What else moves it", "", "| what happens | from | to |", "| --- | --- | --- |"]
    for move in MOVES:
        states = ", ".join(one.value for one in ConnectionState if one in move.leaves)
        lines.append(f"| {move.event} | {states} | {move.to.value} |")
    return lines


if __name__ == "__main__":
    sys.stdout.write(page())
