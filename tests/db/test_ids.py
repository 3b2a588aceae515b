"""Ids sort by birth, and survive being copied."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.db.ids import ALPHABET, LENGTH, decode_id, encode_id, new_id
from lastcall.errors import Invalid


def test_ids_of_one_process_rise_and_are_version_7() -> None:
    ids = [new_id() for _ in range(5000)]
    assert ids == sorted(set(ids))
    assert {(value.version, value.variant) for value in ids} == {(7, "specified in RFC 4122")}


@given(st.uuids(), st.uuids())
def test_the_written_form_comes_back_in_either_case_and_sorts_like_the_id(one: UUID, other: UUID) -> None:
    text = encode_id(one)
    assert len(text) == LENGTH
    assert set(text) <= set(ALPHABET)
    assert decode_id(text) == decode_id(text.upper()) == one
    assert (encode_id(one) < encode_id(other)) == (one < other)


@given(st.text(max_size=30))
def test_nothing_else_is_an_id(text: str) -> None:
    try:
        value = decode_id(text)
    except Invalid:
        value = None
    assert value is None or encode_id(value) == text.lower()


@pytest.mark.parametrize("text", ["", "8" + "0" * 25, "0" * 25, "0" * 27, "u" * 26, "İ" * 26])
def test_an_id_of_the_wrong_shape_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(Invalid, match="not a Lastcall id"):
        decode_id(text)


def test_a_text_of_a_million_letters_is_refused_by_its_length() -> None:
    with pytest.raises(Invalid):
        decode_id("7" * 1_000_000)  # as a number it takes longer than the test may
