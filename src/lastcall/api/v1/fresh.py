"""How a row stands now, for whoever changed it at the same time: as the API shows it elsewhere too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lastcall.api.v1.routes.operations import operation_shape
from lastcall.operations.queries import OperationView

_SHAPES: dict[type, Callable[[Any], Any]] = {OperationView: operation_shape}


def rendered(fresh: Any) -> Any:
    """The row in the shape of the API; a row of a kind that the API does not show is left out."""
    shape = _SHAPES.get(type(fresh))
    return shape(fresh) if shape else None
