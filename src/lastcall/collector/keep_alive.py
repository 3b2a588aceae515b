"""Keeping a session alive: a VRChat session that asks nothing for long may be ended, so it is asked who it is.

No clock of the minute: each wait is drawn anew. It costs the server nothing. An account whose server says nothing,
or says no, is left alone.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

from lastcall.collector.account import Account, NoAllowance, Stopping
from lastcall.collector.waiting import backoff
from lastcall.protocol.constants import KEEP_ALIVE, LOCAL_WINDOW
from lastcall.vrchat.errors import ProviderFault

Stopped = Callable[[ProviderFault], Awaitable[None]]
"""Told of a fault that stops the account."""


async def keep_alive(account: Account, stopped: Stopped) -> None:
    """Ask VRChat who the account is whenever nothing has proved it for 8 to 12 minutes, until the process stops."""
    least, most = (wait.total_seconds() for wait in KEEP_ALIVE)
    quiet_since, failures = account.clock.boot(), 0
    while not account.stop.is_set():
        wait = backoff(failures) if failures else random.uniform(least, most)  # noqa: S311 - spreading load
        await account.pause(max(0.0, quiet_since + wait - account.clock.boot()))
        proved_at = account.identity_asked_at
        if proved_at is not None and proved_at > quiet_since:
            quiet_since, failures = proved_at, 0
            continue
        quiet_since = account.clock.boot()
        if account.stop.is_set() or account.must_say_hello or not account.may_ask():
            failures = 0
        else:
            failures = 0 if await _prove(account, stopped) else failures + 1


async def _prove(account: Account, stopped: Stopped) -> bool:
    try:
        await account.prove_identity_unreserved(within=LOCAL_WINDOW.total_seconds())
    except (NoAllowance, Stopping):
        return False
    except ProviderFault as fault:
        account.heed(fault)
        if fault.stops_account:
            await stopped(fault)
        return False
    return True
