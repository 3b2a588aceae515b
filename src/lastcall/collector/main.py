"""The collector's entry: open the state folder, see that each account is signed in, run until told to stop."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.collector.account import Account, Observe
from lastcall.collector.journal import Journal
from lastcall.collector.memory import Memory
from lastcall.collector.runner import AccountRunner
from lastcall.collector.server import Server
from lastcall.collector.state import StateFolder, replace_durably, usable
from lastcall.collector.windows import Windows
from lastcall.errors import Invalid, LastcallError
from lastcall.protocol.steps import Step
from lastcall.settings import Settings
from lastcall.vrchat.cookies import cookie_file, key_file
from lastcall.vrchat.session import Credentials, Session
from lastcall.vrchat.transport import Transport, user_agent_for

_log = structlog.get_logger("lastcall.collector")

_USER = re.compile(r"[A-Za-z0-9_-]{1,100}")

FIRST_LIMIT = 2
"""Requests a minute of an account until the server has said how many: enough to prove who it is, and to look once
more."""

Ask = Callable[[str], Awaitable[str]]
"""Asks the person at the terminal; told what for: ``username``, ``password``, ``totp`` or ``emailOtp``."""


@dataclass(frozen=True)
class AccountConfig:
    """One VRChat account that this process runs. ``credentials`` are used only when it has to sign in."""

    account_id: str
    worker_key: str = field(repr=False)
    credentials: Credentials | None = None


@dataclass(frozen=True)
class CollectorConfig:
    """What a collector needs to know. ``contact`` goes into the User-Agent, as VRChat asks.

    ``signs_in_anew``: make a new VRChat session although the folder holds one.
    """

    server_url: str
    state_folder: Path
    contact: str
    accounts: tuple[AccountConfig, ...]
    vrchat_url: str
    signs_in_anew: bool = False


def config_from(settings: Settings) -> CollectorConfig:
    """What the settings say about the collector. Raises ``Invalid`` for one that is missing."""
    from_the_server = "`lastcall account add` prints account and worker key."
    reached_at = "VRChat asks for an address at which it reaches whoever runs this, such as your mail."
    for name, why in (
        ("account", from_the_server),
        ("worker_key", from_the_server),
        ("vrchat_contact", reached_at),
    ):
        if not getattr(settings, name):
            raise Invalid(
                f"{name}_missing",
                f"The collector needs the setting {name}.",
                advice=f"Set LASTCALL_{name.upper()}. {why}",
                field=name,
            )
    credentials = None
    if settings.vrchat_username and settings.vrchat_password:
        credentials = Credentials(
            settings.vrchat_username, settings.vrchat_password, settings.vrchat_totp_secret
        )
    return CollectorConfig(
        server_url=settings.server_url,
        state_folder=settings.home / "collector",
        contact=settings.vrchat_contact or "",
        accounts=(AccountConfig(settings.account or "", settings.worker_key or "", credentials),),
        vrchat_url=settings.vrchat_url,
    )


async def log_step(step: Step, operation_id: str) -> None:
    """The observer of production: one debug line a step."""
    _log.debug("step", step=step.value, operation=operation_id)


async def run_collector(
    config: CollectorConfig, ask: Ask, *, clock: Clock = SYSTEM_CLOCK, observe: Observe = log_step
) -> int:
    """Run until SIGTERM or SIGINT; 0 then, 1 when every account ended by itself.

    Raises ``Invalid`` or ``Unavailable`` for a state folder, a journal or credentials that cannot be used.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return await serve(config, ask, stop, clock=clock, observe=observe)


async def serve(
    config: CollectorConfig,
    ask: Ask,
    stop: asyncio.Event,
    *,
    clock: Clock = SYSTEM_CLOCK,
    observe: Observe = log_step,
) -> int:
    """Run until ``stop`` is set; what ``run_collector`` does without its signals."""
    folder = StateFolder.open(config.state_folder)
    try:
        journal = Journal.open(folder.path, clock)
        try:
            if not journal.is_intact:
                _log.warning("the journal's end was torn off; it goes on under a new id", journal=journal.id)
            runners = [
                AccountRunner(await _account(config, account, folder, journal, ask, stop, clock, observe))
                for account in config.accounts
            ]
            faults = await asyncio.gather(*(runner.run() for runner in runners))
        finally:
            journal.close()
    finally:
        folder.close()
    for account, fault in zip(config.accounts, faults, strict=True):
        if fault is not None:
            _log.error(
                "account ended", account=account.account_id, reason=fault.sentence, advice=fault.advice
            )
    return 1 if all(fault is not None for fault in faults) else 0


async def _account(
    config: CollectorConfig,
    account: AccountConfig,
    folder: StateFolder,
    journal: Journal,
    ask: Ask,
    stop: asyncio.Event,
    clock: Clock,
    observe: Observe,
) -> Account:
    home = folder.path / account.account_id
    with usable(folder.path):
        home.mkdir(mode=0o700, exist_ok=True)
        cookies = cookie_file(home / "session", key_file(home / "session-key"))
    transport = Transport(config.vrchat_url, user_agent_for(config.contact), cookies, clock)
    try:
        known = _known_user(home / "vrchat-user")
        session = Session(transport, known)
        if known is None or cookies.header() is None or config.signs_in_anew:
            known = await _sign_in(session, account, ask)
            with usable(folder.path):
                replace_durably(home / "vrchat-user", f"{known}\n".encode())
            session = Session(transport, known)
    except LastcallError:
        await transport.close()
        raise
    return Account(
        account_id=account.account_id,
        vrchat_user_id=known,
        worker_id=folder.worker_id,
        server=Server(config.server_url, account.worker_key, account.account_id),
        transport=transport,
        session=session,
        journal=journal,
        windows=Windows(clock, FIRST_LIMIT, stop),
        memory=Memory(clock),
        clock=clock,
        stop=stop,
        observe=observe,
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
    credentials = account.credentials
    if credentials is None:
        credentials = Credentials(await ask("username"), await ask("password"))
    if not credentials.username or not credentials.password:
        raise Invalid(
            "credentials",
            "The VRChat account is not signed in, and no user name and password were given.",
            advice="Start the collector in a terminal and type them, or give them in its environment.",
        )
    return (await session.sign_in(credentials, ask)).user_id
