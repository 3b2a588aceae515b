"""What people are told of budgets. No amount is in it: mail is read on many screens."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing
from lastcall.decisions.deliveries.kinds import Kind, Say, Told, Words
from lastcall.mail.words import say
from lastcall.people.preferences import Topic

BUDGET = Topic("budgets", "a budget that I manage is nearly or wholly used up")


def _words(subject: str, sentence: str) -> Say:
    def words(told: Told, standing: Standing) -> Words | None:
        if not standing.holds(Permission.MANAGE_BUDGETS):
            return None
        return Words(say(subject), say(sentence, club=told.club), say("See what is spent"), "spending")

    return words


KINDS = (
    Kind(
        "budget.warning",
        BUDGET,
        _words("A budget is nearly used up", "A budget of {club} is nearly used up."),
    ),
    Kind(
        "budget.used_up",
        BUDGET,
        _words(
            "A budget is used up",
            "A budget of {club} is used up. What it is for is paused until the budget suffices.",
        ),
    ),
)
