"""Fetches a calendar from where somebody says it is, once, because they ask."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

import structlog

from lastcall.errors import Invalid
from lastcall.events.imports.entries import DOCUMENT_CAP
from lastcall.outgoing.addresses import Resolve, resolve
from lastcall.outgoing.exchange import Bounds, OutgoingFault, checked_url, exchange

FEED_TIME = timedelta(seconds=20)
"""From the look-up of the name to the last byte: somebody waits in front of a browser."""
_WEBCAL = "webcal://"

log = structlog.get_logger()


async def fetch_feed(url: str, *, look_up: Resolve = resolve, total: timedelta = FEED_TIME) -> bytes:
    """What is at the address: https (or webcal, which means that), on the public internet, at most ``DOCUMENT_CAP``
    bytes. Raises ``Invalid`` naming ``url``; the log has the reason and never the address, which may be a key."""
    address = feed_address(url)
    headers = {"Accept": "text/calendar, text/plain;q=0.5, */*;q=0.1"}
    bounds = Bounds(DOCUMENT_CAP, total, look_up=look_up)
    try:
        status, body = await exchange("GET", checked_url(address), headers, None, bounds)
    except OutgoingFault as fault:
        log.info("calendar not fetched", reason=fault.reason)
        raise _not_fetched(f"The calendar cannot be fetched: {fault.reason}.") from fault
    if 300 <= status < 400:
        raise _not_fetched("The address leads to another one, which is not followed.")
    if status != 200:
        raise _not_fetched(f"There is no calendar at the address: its server answers {status}.")
    return body


def feed_address(url: str) -> str:
    """The address to ask for what a person pasted."""
    given = url.strip()
    return "https://" + given[len(_WEBCAL) :] if given.lower().startswith(_WEBCAL) else given


def feed_host(url: str) -> str:
    """The host alone, which is no secret. "" where there is none."""
    try:
        return urlsplit(feed_address(url)).hostname or ""
    except ValueError:
        return ""


def _not_fetched(sentence: str) -> Invalid:
    return Invalid(
        "calendar_not_fetched",
        sentence,
        advice="Give the https address from which the calendar itself is downloaded, or import it as a file.",
        field="url",
    )
