"""Why a single entry of a calendar cannot be imported."""

from __future__ import annotations


class Unreadable(Exception):
    """The entry cannot be read; the sentence says why, for a person."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
