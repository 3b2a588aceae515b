"""Reading what VRChat says about a failure: the pause it asks for, its envelope, its look-alike
characters."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.vrchat.errors import (
    DEFAULT_RETRY_AFTER,
    LONGEST_RETRY_AFTER,
    Envelope,
    RateLimit,
    fold,
    parse_envelope,
    parse_retry_after,
)
from lastcall.vrchat.transport import Answer, fault_of

NOW = datetime(2026, 8, 9, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("0", 0.0),
        ("120", 120.0),
        (" 120 ", 120.0),
        ("1.5", 1.5),
        ("82721", 82_721.0),
        ("86400", 86_400.0),
        ("9" * 400, LONGEST_RETRY_AFTER),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("1e9", None),
        ("٣", None),
        ("Sun, 09 Aug 2026 12:02:00 GMT", 120.0),
        ("Sunday, 09-Aug-26 12:02:00 GMT", 120.0),
        ("Sun, 09 Aug 2026 11:00:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_RETRY_AFTER),
        ("Sun, 99 Aug 2026 12:02:00 GMT", None),
    ],
)
def test_retry_after_is_read_in_every_form(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, NOW) == seconds


@given(st.text())
def test_retry_after_is_finite_and_not_negative_whatever_comes(value: str) -> None:
    seconds = parse_retry_after(value, NOW)
    assert seconds is None or 0.0 <= seconds <= LONGEST_RETRY_AFTER


def test_a_rate_limit_without_a_time_asks_for_the_default_pause() -> None:
    fault = fault_of(Answer(429, b"<html>"))
    assert isinstance(fault, RateLimit)
    assert fault.retry_after == DEFAULT_RETRY_AFTER
    assert fault.stops_account
    assert fault.is_transient


@pytest.mark.parametrize(
    ("body", "envelope"),
    [
        (b'{"error":{"message":"No","status_code":403}}', Envelope("No", 403)),
        (b'{"message":"No","statusCode":404}', Envelope("No", 404)),
        (b'{"error":{"message":"No","status_code":403},"message":"x","statusCode":1}', Envelope("No", 403)),
        (b'{"error":{"message":"No"}}', None),
        (b'{"error":{"message":1,"status_code":403}}', None),
        (b'{"error":{"message":"No","status_code":true}}', None),
        (b'{"error":{"message":"No","status_code":"403"}}', None),
        (b'{"error":"No","status":403}', None),
        (b'{"message":"No"}', None),
        (b'{"success":{"message":"Yes","status_code":200}}', None),
        (b'{"success":{"message":"Gone","status_code":404}}', Envelope("Gone", 404)),
        (b'{"success":{"message":"Gone","status_code":404},"error":"No"}', None),
        (b"[403]", None),
        (b"null", None),
        (b"", None),
        (b"<html>403</html>", None),
        (b'{"error":{"message":"N', None),
        (b"[" * 100_000, None),
        (b'{"message":"\xff","statusCode":404}', None),
    ],
)
def test_only_vrchats_own_envelope_is_one(body: bytes, envelope: Envelope | None) -> None:
    assert parse_envelope(body) == envelope


@pytest.mark.parametrize(
    "written",
    [
        "You're not a member.",
        "You're not a member\u2024",
        "You\u2019re  not a member\u2024",
        '"You\'re not a member\u2024"',
        " YOU'RE NOT A MEMBER\uff0e ",
    ],
)
def test_look_alike_messages_fold_to_one(written: str) -> None:
    assert fold(written) == "you're not a member."


def test_the_exclamation_mark_that_is_none_folds_to_one() -> None:
    assert fold("Can't find group\u01c3") == fold("Can't find group!")
