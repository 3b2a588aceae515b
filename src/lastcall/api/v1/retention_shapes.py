"""What the API says of an item's retention."""

from __future__ import annotations

from datetime import datetime

from lastcall.api.v1.shapes import Shape
from lastcall.decisions.retention.view import RetentionView


class RetentionState(Shape, frozen=True):
    """What was decided about an item's stay in view. `version` is 0 while nobody did anything, and is what a change is
    compared with; `revivedAt` is from when its days count anew.
    """

    version: int
    keep: bool
    archived_at: datetime | None
    archived_reason: str | None
    revived_at: datetime | None


def state_shape(view: RetentionView) -> RetentionState:
    return RetentionState(
        version=view.version,
        keep=view.keep,
        archived_at=view.archived_at,
        archived_reason=view.archived_reason,
        revived_at=view.revived_at,
    )
