"""Every page's route. Each file is one part of the house; ``web_routes`` is what the application mounts."""

from __future__ import annotations

from litestar import Router
from litestar.di import Provide

from lastcall.web.access import Access, guard
from lastcall.web.problems import page_problem
from lastcall.web.room import provide_visitor, provide_web
from lastcall.web.routes import (
    action,
    activity,
    agents,
    approvals,
    cancelling,
    clock,
    club_settings,
    clubs,
    compose,
    connection,
    decisions,
    door,
    edit,
    event_editor,
    event_imports,
    events,
    inbox,
    invitations,
    invites,
    live,
    me,
    members,
    messages,
    operator,
    operator_clubs,
    operator_fleet,
    operator_mail,
    own_requests,
    papers,
    passkeys,
    people,
    privacy,
    providers,
    roles,
    scheduled,
    sign_in,
    slack,
    spending,
    staff,
    start,
    static,
    visibility,
)

HANDLERS = (
    *static.HANDLERS,
    *sign_in.HANDLERS,
    *me.HANDLERS,
    *privacy.HANDLERS,
    *invites.HANDLERS,
    *own_requests.HANDLERS,
    *passkeys.HANDLERS,
    *providers.HANDLERS,
    *clubs.HANDLERS,
    *inbox.HANDLERS,
    *approvals.HANDLERS,
    *decisions.HANDLERS,
    *scheduled.HANDLERS,
    *action.HANDLERS,
    *edit.HANDLERS,
    *cancelling.HANDLERS,
    *events.HANDLERS,
    *event_editor.HANDLERS,
    *event_imports.HANDLERS,
    *papers.HANDLERS,
    *compose.HANDLERS,
    *members.HANDLERS,
    *messages.HANDLERS,
    *spending.HANDLERS,
    *live.HANDLERS,
    *clock.HANDLERS,
    *connection.HANDLERS,
    *start.HANDLERS,
    *staff.HANDLERS,
    *roles.HANDLERS,
    *activity.HANDLERS,
    *visibility.HANDLERS,
    *club_settings.HANDLERS,
    *door.HANDLERS,
    *invitations.HANDLERS,
    *agents.HANDLERS,
    *slack.HANDLERS,
    *people.HANDLERS,
    *operator_clubs.HANDLERS,
    *operator_fleet.HANDLERS,
    *operator.HANDLERS,
    *operator_mail.HANDLERS,
)


def web_routes() -> Router:
    """The pages. Raises when a route does not say who it is for."""
    for handler in HANDLERS:
        Access(handler.opt["access"])
    return Router(
        path="/",
        route_handlers=HANDLERS,
        guards=[guard],
        exception_handlers={Exception: page_problem},
        dependencies={
            "web": Provide(provide_web, sync_to_thread=False),
            "visitor": Provide(provide_visitor, sync_to_thread=False),
        },
        include_in_schema=False,
    )
