"""``lastcall collector --check``: is everything there that the switched-on features need? Nothing is changed by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.collector.account import Account, NoAllowance
from lastcall.collector.config import CollectorConfig
from lastcall.collector.main import log_step, opened_house
from lastcall.collector.opening import Ask, open_account
from lastcall.errors import LastcallError
from lastcall.protocol.constants import FEATURE_GRANTS, PASS_LIFE, TRANSPORT_TIMEOUT
from lastcall.protocol.membership import Groups, GroupsAnswer, GroupServed
from lastcall.vrchat.audit import AUDIT_GRANT
from lastcall.vrchat.groups import MEMBER, GroupLook, look_at_group
from lastcall.vrchat.reads import READS
from lastcall.vrchat.writes import WRITES
from lastcall.vrchat.writes.create_instance import ACCESS_GRANTS, CREATE_INSTANCE

Say = Callable[[str], None]
"""Told one line at a time."""


async def check_collector(config: CollectorConfig, ask: Ask, say: Say, *, clock: Clock = SYSTEM_CLOCK) -> int:
    """Sign in each account, say who it is and what each of its groups lacks.

    0 when every switched-on feature can work, else 1. A kind of action that lacks a grant of its own is said and is no
    fault: a group need not grant everything.

    The server is not told that a collector runs: no hello, no lease. Raises ``Invalid`` or ``Unavailable`` for a state
    folder that cannot be used.
    """
    is_fine = True
    with opened_house(config, ask, asyncio.Event(), clock, log_step) as house:
        for account_config in config.accounts:
            try:
                account = await open_account(house, account_config)
                try:
                    is_fine &= await _check_account(account, say)
                finally:
                    await account.server.close()
                    await account.transport.close()
            except LastcallError as error:
                is_fine = False
                say(f"{account_config.name}: {error.sentence} {error.advice}".rstrip())
    return 0 if is_fine else 1


async def _check_account(account: Account, say: Say) -> bool:
    who = await account.prove_identity_unreserved(within=TRANSPORT_TIMEOUT.total_seconds())
    say(f"{account.name}: signed in as {who.display_name} ({who.user_id}).")
    answer = await account.call(Groups, GroupsAnswer)
    if not answer.groups:
        say("  It serves no group yet.")
    is_fine = True
    for served in answer.groups:
        missing, parts = await _missing(account, served)
        is_fine &= not missing
        said = "; ".join([*missing, *parts]) or "nothing is missing"
        say(f"  {served.group_id} ({served.state}): {said}.")
    return is_fine


async def _missing(account: Account, served: GroupServed) -> tuple[list[str], list[str]]:
    """What keeps a whole feature of this group from working, and what keeps some of its actions; each as a part of a
    sentence."""
    try:
        look = await _look(account, served.group_id)
    except NoAllowance:
        return ["no request was free within four minutes, try again later"], []
    except LastcallError as error:
        return [error.sentence.rstrip(".")], []
    if look.membership != MEMBER or look.own is None:
        return [f"the account is no member (VRChat says: {look.membership})"], []
    own, parts = look.own, dict[str, list[str]]()
    baselines = {feature: FEATURE_GRANTS.get(feature) for feature in served.features}
    for feature in served.features:
        for use, grants in _uses(feature):
            for grant in grants:
                if not own.has_grants((grant,)) and grant not in baselines.values():
                    parts.setdefault(grant, []).append(use)
    return [
        f"{_words(feature)} needs the grant {grant}"
        for feature, grant in baselines.items()
        if grant is not None and not own.has_grants((grant,))
    ], [f"without the grant {grant}: no {', no '.join(uses)}" for grant, uses in parts.items()]


def _uses(feature: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What the feature is used for, with the grants that each use needs."""
    if feature == "analytics":
        yield "joins and departures", (AUDIT_GRANT,)
    for write in WRITES.values():
        if write.feature == feature:
            yield _words(write.name), write.grants
            if write is CREATE_INSTANCE:
                for access, grant in ACCESS_GRANTS.items():
                    yield f"{_words(write.name)} ({access})", (grant,)
    for read in READS.values():
        if read.feature == feature:
            yield f"view of {_words(read.name)}", read.grants


def _words(name: str) -> str:
    return name.replace("_", " ")


async def _look(account: Account, group_id: str) -> GroupLook:
    """One request, charged to the account as the others are: a check is no way around the limits."""
    until = account.clock.boot() + PASS_LIFE.total_seconds()
    await account.reserve(1, None, until)
    within = max(0.0, until - account.clock.boot())
    slots = await account.windows.hold(1, account.windows.account, within=within)
    if slots is None:
        raise NoAllowance(within)
    try:
        account.check()
        slots.charge()
        return await look_at_group(account.transport, group_id, account.vrchat_user_id)
    finally:
        slots.release()
