"""A name says what it shows, in any script."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.errors import Invalid
from lastcall.names import NAME_LENGTH, valid_name


@pytest.mark.parametrize(
    "name",
    [
        "The Attic",
        "Zoë & Søn",
        "นักดนตรี",
        "مقهى الليل",
        "מועדון",
        "夜のクラブ",
        "क्षत्रिय",
        "<b>Bold</b>",
        "Fire 🔥 Club",
        "Family 👨‍👩‍👧‍👦",
        "Heart ❤️‍🔥",
        "Wave 👋🏽",
        "Pride 🏳️‍🌈",
        "One 1️⃣",
        "Flag 🇩🇪",
    ],
)
def test_letters_of_any_script_and_emoji_are_names(name: str) -> None:
    assert valid_name(name) == unicodedata.normalize("NFC", name)


@pytest.mark.parametrize(
    "character",
    [
        "\x00", "\n", "\r", "\t", "\x1b", "\x7f", "\x85",
        "\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u2060", "\ufeff", "\u00ad", "\u061c",
        "\u202a", "\u202b", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069",
        "\u2028", "\u2029", "\u034f", "\u115f", "\u3164", "\uffa0", "\u2800", "\u180e", "\ufe0f", "\ufe00",
        "\U000e0041", "\U000e0100", "\ue000", "\U0010ffff", "\ud800",
    ],
)  # fmt: skip
def test_what_cannot_be_seen_or_turns_the_text_around_is_no_part_of_a_name(character: str) -> None:
    with pytest.raises(Invalid) as refused:
        valid_name(f"ad{character}min", field="display_name")
    assert refused.value.field == "display_name"
    assert f"U+{ord(character):04X}" in refused.value.sentence


def test_a_joiner_only_joins_emoji() -> None:
    for name in ("a\u200db", "\u200d🔥", "🔥\u200d", "🔥\u200da", "a\u200d🔥"):
        with pytest.raises(Invalid):
            valid_name(name)


def test_two_spellings_of_one_name_are_one_name() -> None:
    assert valid_name("Zoe\u0308") == valid_name("Zo\u00eb")
    assert valid_name("  The\u00a0 \u3000Attic ") == "The Attic"


def test_marks_do_not_tower_and_stand_on_a_letter() -> None:
    for name in ("a" + "\u0301" * 30, "\u0301\u0302a"):
        with pytest.raises(Invalid):
            valid_name(name)


def test_length_is_of_the_stored_form() -> None:
    assert len(valid_name("x" * NAME_LENGTH)) == NAME_LENGTH
    assert valid_name("", least=0) == ""
    for name in ("", "   ", "\u3000", "x" * (NAME_LENGTH + 1)):
        with pytest.raises(Invalid):
            valid_name(name)


@given(st.text(max_size=90))
def test_a_stored_name_is_stored_unchanged_when_it_is_given_again(text: str) -> None:
    try:
        name = valid_name(text)
    except Invalid:
        return
    assert valid_name(name) == name
    assert name == unicodedata.normalize("NFC", name)
    assert not any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} for c in name)
