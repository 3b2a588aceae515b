"""Every function of the rooms that somebody acts with, found and not listed."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

import lastcall

SURFACES = {"api", "cli", "collector", "demo", "testing", "vrchat", "web"}
"""Packages without services: what turns calls of people and programs into calls of the rooms, what stands on the
other side of the worker's protocol, and what only tests use."""

Function = Callable[..., Any]

WITHIN_A_COMMAND = {
    "access.agents.service.create_agent_in": "within a transaction that asked who may",
    "access.mails.send_invitation": "within a transaction that asked who may",
    "access.policy.require_readable": "a check",
    "access.requests.remove_join_request": "the one way in which a request is deleted; its callers ask",
    "access.requests.write_join_request_change": "the one way in which a request is written; its callers ask",
    "clubs.activity.log": "writes who did it",
    "clubs.policy.require": "a check",
    "clubs.policy.require_owner": "a check",
    "clubs.policy.require_owner_or_operator": "a check",
    "clubs.policy.require_staff": "a check",
    "clubs.policy.standing_of": "a check",
    "clubs.staff.grant_roles": "within a transaction that asked who may",
    "connections.connect.end_connection": "within a transaction that asked who may",
    "connections.switches.require_connection_manager": "a check",
    "decisions.retention.kinds.approval.require_readable": "a check",
    "decisions.asking.let_in": "a check",
    "decisions.asking.require_asker": "a check",
    "decisions.approvals.asking.say": "within a transaction that asked who may",
    "decisions.approvals.rows.write": "the one way in which an approval is written; its callers ask",
    "decisions.questions.actions.Action.apply": "the form of what decisions do",
    "decisions.questions.asking.end": "the one way in which a decision ends; its callers ask",
    "decisions.listing.one_of": "what each list and page of what is asked reads by, and asks",
    "decisions.listing.page_of": "what each list and page of what is asked reads by, and asks",
    "decisions.retention.proposals.ArchiveProposal.apply": "within the transaction of a decision, and asks",
    "decisions.retention.controls.revive_in": "within a transaction that asked who may",
    "decisions.retention.write.change": "the one way in which retention is written; its callers ask",
    "decisions.effects.Effect.apply": "the form of what approvals do",
    "people.holding.hold_actor": "a check",
    "people.holding.hold_operator": "a check",
    "people.holding.require_operator_now": "a check",
    "people.holding.require_token_now": "a check",
    "people.flows.begin_flow": "writes who began it; its callers ask",
    "people.sessions.confirm_session": "within a transaction in which the person showed that it is them",
}
"""What takes an actor and is no service: nothing outside of the rooms calls it. Checks are what the matrix tests;
pages may ask them."""


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(lastcall.__path__, "lastcall."):
        parts = found.name.split(".")
        if parts[1] not in SURFACES and "migrations" not in parts and parts[-1] != "__main__":
            yield importlib.import_module(found.name)


def name_of(function: Function) -> str:
    return f"{function.__module__.removeprefix('lastcall.')}.{function.__qualname__}"


def takes_an_actor(function: Function) -> bool:
    """Whether a person acts in it. What an ``AgentActor`` alone may call is asked of agents, in
    ``tests/api/test_agent_routes.py``."""
    return any(
        re.search(r"\bActor\b", str(one.annotation))
        for one in inspect.signature(function).parameters.values()
    )


def functions_of(module: ModuleType) -> Iterator[Function]:
    """The module's own public async functions and methods that take an actor."""
    owners = [module, *(one for _, one in inspect.getmembers(module, inspect.isclass))]
    for owner in owners:
        for name, one in inspect.getmembers(owner):
            is_async = inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one)
            is_own = is_async and one.__module__ == module.__name__
            if is_own and not name.startswith("_") and takes_an_actor(one):
                yield one


def services() -> dict[str, Function]:
    """By name; those that ``WITHIN_A_COMMAND`` lists are none."""
    found = {name_of(one): one for module in modules() for one in functions_of(module)}
    return {name: one for name, one in found.items() if name not in WITHIN_A_COMMAND}


def without_a_row(found: Iterable[str], rows: Iterable[Function]) -> list[str]:
    return sorted(set(found) - {name_of(one) for one in rows})
