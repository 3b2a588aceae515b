"""Opening an account: its folder, its session at VRChat, its way to the server. Here alone somebody may be asked."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lastcall.clock import Clock
from lastcall.collector.account import Account, Observe
from lastcall.collector.config import AccountConfig, CollectorConfig
from lastcall.collector.journal import Journal
from lastcall.collector.memory import Memory
from lastcall.collector.server import Server
from lastcall.collector.state import StateFolder, replace_durably, usable
from lastcall.collector.windows import Windows
from lastcall.errors import Invalid, LastcallError
from lastcall.vrchat.cookies import cookie_file, key_file
from lastcall.vrchat.session import Credentials, Session
from lastcall.vrchat.transport import Transport, user_agent_for

_USER = re.compile(r"[A-Za-z0-9_-]{1,100}")

FIRST_LIMIT = 2
"""Requests a minute of an account until the server has said how many: enough to prove who it is, and to look once
more."""

Ask = Callable[[str, str], Awaitable[str]]
"""Asks the person at the terminal; told the account's name, and what for: ``username``, ``password``, ``totp`` or
``emailOtp``."""


@dataclass(frozen=True)
class House:
    """What all accounts of one process share."""

    config: CollectorConfig
    folder: StateFolder
    journal: Journal
    ask: Ask
    stop: asyncio.Event
    clock: Clock
    observe: Observe


async def open_account(house: House, account: AccountConfig) -> Account:
    """The account, signed in; whoever opens it closes its server and its transport.

    Raises ``Invalid`` or ``Unavailable`` for a folder or credentials that cannot be used, and what VRChat says to
    them.
    """
    config, clock = house.config, house.clock
    home = house.folder.path / account.account_id
    with usable(house.folder.path):
        home.mkdir(mode=0o700, exist_ok=True)
        cookies = cookie_file(home / "session", key_file(home / "session-key"))
    transport = Transport(config.vrchat_url, user_agent_for(config.contact), cookies, clock)
    try:
        known = _known_user(home / "vrchat-user")
        session = Session(transport, known)
        if known is None or cookies.header() is None or config.signs_in_anew:
            known = await _sign_in(session, account, house.ask)
            with usable(house.folder.path):
                replace_durably(home / "vrchat-user", f"{known}\n".encode())
            session = Session(transport, known)
    except LastcallError:
        await transport.close()
        raise
    return Account(
        account_id=account.account_id,
        vrchat_user_id=known,
        worker_id=house.folder.worker_id,
        server=Server(config.server_url, account.worker_key, account.account_id),
        transport=transport,
        session=session,
        journal=house.journal,
        windows=Windows(clock, FIRST_LIMIT, house.stop),
        memory=Memory(clock),
        clock=clock,
        stop=house.stop,
        observe=house.observe,
        name=account.name,
    )


def _known_user(path: Path) -> str | None:
    """Whose session the folder holds: every later sign-in has to be the same VRChat account."""
    known = path.read_text("ascii", "replace").strip() if path.exists() else ""
    if known and not _USER.fullmatch(known):
        raise Invalid(
            "vrchat_user",
            f"The VRChat user in {path} is damaged.",
            advice="Delete that file and sign in again, as the same account.",
        )
    return known or None


async def _sign_in(session: Session, account: AccountConfig, ask: Ask) -> str:
    credentials, ask_one = account.credentials, partial(ask, account.name)
    if credentials is None:
        credentials = Credentials(await ask_one("username"), await ask_one("password"))
    if not credentials.username or not credentials.password:
        raise Invalid(
            "credentials",
            "The VRChat account is not signed in, and no user name and password were given.",
            advice="Start the collector in a terminal and type them, or give them in its environment.",
        )
    return (await session.sign_in(credentials, ask_one)).user_id
