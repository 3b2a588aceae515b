"""A kind is one file on each side; both must mean the same."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lastcall.operations import kinds
from lastcall.operations.kinds import KINDS
from lastcall.operations.kinds.kind import fields_of
from lastcall.vrchat.writes import WRITES

FILES = {path.stem for path in Path(kinds.__file__).parent.glob("*.py")} - {"__init__", "kind"}


def test_each_kind_is_one_file_on_both_sides() -> None:
    assert set(KINDS) == set(WRITES) == FILES


@pytest.mark.parametrize("name", list(KINDS))
def test_both_sides_have_the_same_fields_shapes_grants_and_cost(name: str) -> None:
    here, there = KINDS[name], WRITES[name]
    ours = {field.encode_name: (field.type, field.required) for field in msgspec.structs.fields(here.payload)}
    theirs = {
        field.encode_name: (field.type, field.required) for field in msgspec.structs.fields(there.payload)
    }
    assert set(ours) == set(theirs)
    for field in ours:
        assert ours[field][1] is theirs[field][1] is True
        assert _accepted(ours[field][0]) == _accepted(theirs[field][0])
    assert here.grants == there.grants
    assert here.cost == there.cost


@pytest.mark.parametrize("name", list(KINDS))
def test_a_kind_says_in_words_what_it_does(name: str) -> None:
    kind = KINDS[name]
    assert all((kind.words.label, kind.words.verb, kind.words.plural))
    assert kind.cost == 2
    assert kind.grants
    values = {"targetUserId": SAMPLES[0], "roleId": SAMPLES[2]}
    fields = {field.encode_name: values[field.encode_name] for field in msgspec.structs.fields(kind.payload)}
    assert fields_of(kind.parse(fields, "payload")) == fields


SAMPLES = (
    "usr_00000000-0000-4000-8000-000000000001",
    "usr_ABCDEF00-0000-4000-8000-00000000000f",
    "grol_00000000-0000-4000-8000-000000000001",
    "usr_00000000-0000-4000-8000-000000000001\n",
    "usr_00000000-0000-4000-8000-00000000000g",
    "8JoV9XEdpo",
    "../usr_00000000-0000-4000-8000-000000000001",
    "",
)


def _accepted(shape: object) -> list[bool]:
    found = []
    for sample in SAMPLES:
        try:
            msgspec.convert(sample, shape)
        except msgspec.ValidationError:
            found.append(False)
        else:
            found.append(True)
    return found
