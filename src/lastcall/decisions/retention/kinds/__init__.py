"""The kinds of items that are archived when nobody decides them, one file each. A new one is listed here."""

from __future__ import annotations

from lastcall.decisions.retention.kind import Kind
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST

KINDS: dict[str, Kind] = {kind.name: kind for kind in (JOIN_REQUEST,)}
