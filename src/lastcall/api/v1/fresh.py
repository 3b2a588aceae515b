"""How a row stands now, for whoever changed it at the same time: as the API shows it elsewhere too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lastcall.access.agents.queries import AgentView
from lastcall.api.v1.decision_shapes import approval_now, decision_now
from lastcall.api.v1.event_shapes import event_shape
from lastcall.api.v1.retention_shapes import state_shape
from lastcall.api.v1.routes.agents import agent_shape
from lastcall.api.v1.routes.clubs import settings_shape
from lastcall.api.v1.routes.imports import import_shape
from lastcall.api.v1.routes.operations import operation_shape
from lastcall.api.v1.routes.papers import draft_shape, list_shape
from lastcall.api.v1.routes.staff import role_shape
from lastcall.api.v1.routes.visibility import visibility_shape
from lastcall.clubs.queries import ClubSettings, RoleView
from lastcall.clubs.visibility import VisibilityView
from lastcall.decisions.approvals.rows import ApprovalNow
from lastcall.decisions.questions.asking import DecisionNow
from lastcall.decisions.retention.view import RetentionView
from lastcall.events.import_queries import ImportView
from lastcall.events.queries import EventView
from lastcall.operations.drafts import DraftView
from lastcall.operations.lists import ListView
from lastcall.operations.views import OperationView

_SHAPES: dict[type, Callable[[Any], Any]] = {
    AgentView: agent_shape,
    ApprovalNow: approval_now,
    ClubSettings: settings_shape,
    DecisionNow: decision_now,
    DraftView: draft_shape,
    EventView: event_shape,
    ImportView: import_shape,
    ListView: list_shape,
    OperationView: operation_shape,
    RetentionView: state_shape,
    RoleView: role_shape,
    VisibilityView: visibility_shape,
}


def rendered(fresh: Any) -> Any:
    """The row in the shape of the API; null for one of a kind that the API does not show."""
    shape = _SHAPES.get(type(fresh))
    return shape(fresh) if shape else None
