"""Join requests that nobody decided. No agent stands behind one who would be told of its archive (RET-18)."""

from __future__ import annotations

from lastcall.access.policy import join_request_unknown, require_readable
from lastcall.access.requests import TOPIC
from lastcall.access.tables import JoinRequest
from lastcall.db.base import Base
from lastcall.decisions.retention.kind import Kind
from lastcall.people.scopes import Scope

JOIN_REQUEST = Kind(
    name="join_request",
    owner="join_request_retention",
    table=Base.metadata.tables[JoinRequest.__tablename__],
    pending="pending_approval",
    scope=Scope.ACCESS,
    topic=TOPIC,
    unknown=join_request_unknown,
    require_readable=require_readable,
)
