"""The wire format itself: what is not foreseen is refused, and nothing on it is unbounded."""

from __future__ import annotations

import typing
from datetime import UTC, datetime

import msgspec
import pytest
from msgspec import inspect

from lastcall.protocol import messages
from lastcall.protocol.calls import CALLS
from lastcall.protocol.messages import Claim, ClaimRef, Complete, Defer, Message
from lastcall.protocol.outcomes import TRANSIENT_CODES, Code, Outcome

ID = "0" + "1" * 25
CLAIM = ClaimRef(
    club_id=ID,
    connection_id=ID,
    epoch=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
    fencing_token=7,
    operation_id=ID,
    nonce="n" * 16,
)


def every_message() -> list[type[Message]]:
    found: list[type[Message]] = []
    waiting = [Message]
    while waiting:
        for child in waiting.pop().__subclasses__():
            found.append(child)
            waiting.append(child)
    return found


def unbounded(kind: inspect.Type, where: str) -> list[str]:
    match kind:
        case inspect.StrType() if kind.max_length is None and kind.pattern is None:
            return [where]
        case inspect.IntType() if kind.le is None:
            return [where]
        case inspect.VarTupleType() | inspect.ListType():
            found = unbounded(kind.item_type, where + "[]")
            return found if kind.max_length is not None else [where, *found]
        case inspect.DictType():
            found = unbounded(kind.key_type, where + ".key") + unbounded(kind.value_type, where + ".value")
            return found if kind.max_length is not None else [where, *found]
        case inspect.UnionType():
            return [found for part in kind.types for found in unbounded(part, where)]
    return []


def test_every_field_of_every_message_is_bounded() -> None:
    found = [
        place
        for message in every_message()
        for field in typing.cast("inspect.StructType", inspect.type_info(message)).fields
        for place in unbounded(field.type, f"{message.__name__}.{field.name}")
    ]
    assert found == []


@pytest.mark.parametrize("message", every_message(), ids=lambda message: message.__name__)
def test_an_unknown_field_is_refused(message: type[Message]) -> None:
    assert message.__struct_config__.forbid_unknown_fields
    assert all("_" not in name for name in message.__struct_encode_fields__)


def test_every_call_names_its_sender_and_has_an_answer() -> None:
    for name, (sent, answered) in CALLS.items():
        assert {"workerId", "vrchatUserId"} <= set(sent.__struct_encode_fields__), name
        assert not issubclass(answered, messages.Call), name


def test_an_epoch_keeps_its_microseconds_on_the_wire() -> None:
    sent = Complete(
        worker_id=ID,
        vrchat_user_id="usr_1",
        claim=CLAIM,
        outcome=Outcome.SUCCEEDED,
        result={"roleId": "grol_1"},
    )
    wire = msgspec.json.encode(sent)
    assert b'"epoch":"2026-01-02T03:04:05.678901Z"' in wire
    assert msgspec.json.decode(wire, type=Complete) == sent


@pytest.mark.parametrize("delay", ["-1", "NaN", "Infinity", '"60000"', "null"])
def test_a_delay_that_is_no_finite_number_is_no_message(delay: str) -> None:
    wire = msgspec.json.encode(
        Defer(worker_id=ID, vrchat_user_id="usr_1", claim=CLAIM, code=Code.RATE_LIMIT, delay_ms=123.5)
    ).replace(b"123.5", delay.encode())
    with pytest.raises(msgspec.MsgspecError):
        msgspec.json.decode(wire, type=Defer)


@pytest.mark.parametrize("wrong", ["", "8" + "1" * 25, "0" * 25, "0" * 27, "0" * 25 + "\n", "U" + "0" * 25])
def test_an_id_is_26_crockford_characters_and_nothing_else(wrong: str) -> None:
    lease = {
        "clubId": wrong,
        "connectionId": ID,
        "epoch": "2026-01-02T03:04:05Z",
        "fencingToken": 1,
    }
    body = {"workerId": ID, "vrchatUserId": "usr_1", "journalId": ID, "lease": lease}
    with pytest.raises(msgspec.ValidationError, match="clubId"):
        msgspec.convert(body, Claim)


def test_codes_that_defer_are_codes_of_the_collector() -> None:
    assert set(Code) >= TRANSIENT_CODES
    assert Code.AUTHENTICATION not in TRANSIENT_CODES
