"""The kinds of items that are archived when nobody decides them, one file each. A new one is listed here, in
the order in which rows of several kinds are locked.
"""

from __future__ import annotations

from lastcall.decisions.retention.kind import Kind
from lastcall.decisions.retention.kinds.approval import APPROVAL
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.errors import Invalid

KINDS: dict[str, Kind] = {kind.name: kind for kind in (JOIN_REQUEST, APPROVAL)}


def kind_named(name: str) -> Kind:
    """The kind of that name. Raises ``Invalid`` for one that is none."""
    kind = KINDS.get(name)
    if kind is None:
        raise Invalid(
            "kind_unknown",
            f"“{name[:40]}” is no kind of item.",
            advice=f"Name one of these: {', '.join(KINDS)}.",
            field="kind",
        )
    return kind
