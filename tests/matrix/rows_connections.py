"""Functions on accounts, connections and the fleet."""

from __future__ import annotations

from typing import Any

from tests.matrix.cases import Who, row
from tests.matrix.world import World

from lastcall.clubs.permissions import Permission
from lastcall.connections import accounts, connect, features, looks, reassigning, restored, switches
from lastcall.connections import overview as connections
from lastcall.connections.states import AccountState, ConnectionState, Feature
from lastcall.people.scopes import Scope
from lastcall.testing.fleet import ready_account


async def connect_again(w: World, tx: Any, actor: Any) -> object:
    await tx.raw.execute("update connections set state = 'disconnected' where club_id = $1", w.club_id)
    return await connect.connect_club(
        w.db,
        actor,
        w.club_id,
        group_id="grp_other",
        group_name="Other",
        account_id=w.account_id,
        features=list(Feature),
    )


async def reassign_away(w: World, tx: Any, actor: Any) -> object:
    await ready_account(w.db, "other", "usr_other")
    await accounts.set_account_state(w.db, None, w.account_id, AccountState.QUARANTINED)
    return await reassigning.reassign_connection(w.db, actor, w.club_id, w.connection_id, None)


async def in_state(w: World, tx: Any, state: ConnectionState) -> None:
    await tx.raw.execute("update connections set state = $2 where club_id = $1", w.club_id, state.value)


async def finish(w: World, tx: Any, actor: Any) -> None:
    await in_state(w, tx, ConnectionState.DISCONNECTING)
    await connect.finish_disconnect(w.db, actor, w.club_id, w.connection_id)


async def join_again(w: World, tx: Any, actor: Any) -> None:
    await in_state(w, tx, ConnectionState.AWAITING_INVITE)
    await looks.rejoin(w.db, actor, w.club_id, w.connection_id)


def on_connection(function: Any, *values: Any, **named: Any) -> Any:
    return lambda w, _, a: function(w.db, a, w.club_id, w.connection_id, *values, **named)


def on_account(function: Any, *values: Any, **named: Any) -> Any:
    return lambda w, _, a: function(w.db, a, w.account_id, *values, **named)


CONNECTIONS = [
    row(
        connect.connect_club,
        Who.STAFF_OR_OPERATOR,
        Scope.CONNECTION,
        connect_again,
        Permission.MANAGE_CONNECTION,
    ),
    *(
        row(one, Who.STAFF_OR_OPERATOR, Scope.CONNECTION, call, Permission.MANAGE_CONNECTION, **other)
        for one, call, other in (
            (connect.disconnect_club, on_connection(connect.disconnect_club), {}),
            (connect.finish_disconnect, finish, {}),
            (looks.rejoin, join_again, {}),
            (looks.check_now, on_connection(looks.check_now), {}),
            (connect.set_features, on_connection(connect.set_features, list(Feature)), {}),
            (
                features.switch_feature,
                on_connection(features.switch_feature, Feature.POSTS, is_on=True),
                {},
            ),
            (switches.thaw_connection, on_connection(switches.thaw_connection), {}),
            (
                switches.set_connection_switch,
                on_connection(switches.set_connection_switch, is_on=True),
                {"variant": "stop"},
            ),
            (
                switches.set_connection_switch,
                on_connection(switches.set_connection_switch, is_on=False),
                {"variant": "let go on", "is_recent": True},
            ),
        )
    ),
    *(
        row(one, Who.OPERATOR, Scope.OPERATOR, call, **other)
        for one, call, other in (
            (accounts.add_account, lambda w, _, a: accounts.add_account(w.db, a, "other", "usr_other"), {}),
            (accounts.rotate_key, on_account(accounts.rotate_key), {}),
            (accounts.revoke_key, on_account(accounts.revoke_key), {}),
            (
                accounts.set_account_state,
                on_account(accounts.set_account_state, AccountState.DEGRADED),
                {"variant": "take out"},
            ),
            (
                accounts.set_account_state,
                on_account(accounts.set_account_state, AccountState.READY),
                {"variant": "let work", "is_recent": True},
            ),
            (reassigning.reassign_connection, reassign_away, {}),
            (connections.overview, lambda _, tx, a: connections.overview(tx, a), {}),
            (restored.restored, lambda w, _, a: restored.restored(w.db, a), {}),
            (
                switches.set_fleet_switch,
                lambda w, _, a: switches.set_fleet_switch(w.db, a, is_on=True),
                {"variant": "stop"},
            ),
            (
                switches.set_fleet_switch,
                lambda w, _, a: switches.set_fleet_switch(w.db, a, is_on=False),
                {"variant": "let go on", "is_recent": True},
            ),
            (
                switches.set_account_switch,
                on_account(switches.set_account_switch, is_on=True),
                {"variant": "stop"},
            ),
            (
                switches.set_account_switch,
                on_account(switches.set_account_switch, is_on=False),
                {"variant": "let go on", "is_recent": True},
            ),
            (switches.set_fleet_limit, lambda w, _, a: switches.set_fleet_limit(w.db, a, 60), {}),
            (
                switches.set_account_limits,
                on_account(switches.set_account_limits, requests_per_minute=30),
                {},
            ),
            (switches.set_connection_limit, on_connection(switches.set_connection_limit, 30), {}),
        )
    ),
]
