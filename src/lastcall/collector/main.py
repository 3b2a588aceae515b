"""The collector's entry: open the state folder, see that each account is signed in, run until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator, Sequence

import structlog

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.collector.account import Account, Observe
from lastcall.collector.config import CollectorConfig
from lastcall.collector.journal import Journal
from lastcall.collector.metrics import serve_metrics
from lastcall.collector.opening import Ask, House, open_account
from lastcall.collector.runner import AccountRunner
from lastcall.collector.state import StateFolder
from lastcall.collector.status import show_status
from lastcall.errors import LastcallError, Unavailable
from lastcall.protocol.steps import Step
from lastcall.vrchat.errors import AuthRequired, ProviderFault

_log = structlog.get_logger("lastcall.collector")

NOT_SIGNED_IN = 77
"""The exit status when a person has to sign in: whoever supervises the process leaves it down, because each start could
be one more sign-in, and too many lock the account. The number is EX_NOPERM of sysexits.h."""


async def log_step(step: Step, operation_id: str) -> None:
    """The observer of production: one debug line a step."""
    _log.debug("step", step=step.value, operation=operation_id)


async def run_collector(
    config: CollectorConfig, ask: Ask, *, clock: Clock = SYSTEM_CLOCK, observe: Observe = log_step
) -> int:
    """Run until SIGTERM or SIGINT; 0 then, ``NOT_SIGNED_IN`` when VRChat ended the session of every account.

    Raises ``ProviderFault`` when a sign-in went wrong, ``Invalid`` or ``Unavailable`` for a state folder, a journal or
    credentials that cannot be used.
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
    """Run until ``stop`` is set; what ``run_collector`` does without its signals.

    An account that cannot begin, or ends, leaves the others alone; a reason is raised only where none is left.
    """
    with opened_house(config, ask, stop, clock, observe) as house:
        accounts, failed = await _opened(house)
        with serve_metrics(config.metrics_port, accounts):
            showing = asyncio.create_task(show_status(accounts, stop, clock))
            try:
                ends = await asyncio.gather(*(_run(account) for account in accounts))
            finally:
                showing.cancel()
                await asyncio.gather(showing, return_exceptions=True)
    failed += [end for end in ends if end is not None]
    if len(failed) < len(config.accounts):
        return 0
    if all(isinstance(error, AuthRequired) for error in failed):
        return NOT_SIGNED_IN
    raise _foremost(failed)


def _foremost(failed: Sequence[LastcallError]) -> LastcallError:
    """The reason to end with: what VRChat refused, if any, for that alone must not be tried again and again."""
    return min(failed, key=lambda error: not isinstance(error, ProviderFault))


async def _opened(house: House) -> tuple[list[Account], list[LastcallError]]:
    """The accounts that can begin, and why the others cannot. Raises when none can."""
    accounts: list[Account] = []
    failed: list[LastcallError] = []
    for config in house.config.accounts:
        try:
            accounts.append(await open_account(house, config))
        except LastcallError as error:
            failed.append(error)
    if not accounts:
        raise _foremost(failed)
    for reason in failed:
        _log.error("account not begun", code=reason.code, reason=reason.sentence, advice=reason.advice)
    return accounts, failed


async def _run(account: Account) -> LastcallError | None:
    """Run it to its end, which ends no other."""
    end: LastcallError | None
    try:
        end = await AccountRunner(account).run()
    except LastcallError as error:
        end = error
    except Exception:  # noqa: BLE001 - a fault of ours with one account must not end the others
        _log.exception("account failed", account=account.account_id)
        end = Unavailable(
            "account_failed",
            "A fault of Lastcall's own ended this account.",
            advice="Start the collector again; its log has the trace.",
        )
    if end is not None:
        _log.error("account ended", account=account.account_id, reason=end.sentence, advice=end.advice)
    return end


@contextlib.contextmanager
def opened_house(
    config: CollectorConfig, ask: Ask, stop: asyncio.Event, clock: Clock, observe: Observe
) -> Iterator[House]:
    """The state folder, locked, and the journal in it. Raises ``Invalid`` or ``Unavailable``."""
    with (
        contextlib.closing(StateFolder.open(config.state_folder)) as folder,
        contextlib.closing(Journal.open(folder.path, clock)) as journal,
    ):
        if not journal.is_intact:
            _log.warning("the journal's end was torn off; it goes on under a new id", journal=journal.id)
        yield House(config, folder, journal, ask, stop, clock, observe)
