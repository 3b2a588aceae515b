"""What the door of a club writes: to whoever an invitation is for, and to whoever made one that was used."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from sqlalchemy import select

from lastcall.clubs.tables import Club
from lastcall.db.transaction import Transaction
from lastcall.mail.mailer import Mailer
from lastcall.mail.messages import Action, Mail
from lastcall.mail.words import say
from lastcall.people.actor import Actor
from lastcall.people.preferences import Topic, wants_mail
from lastcall.people.tables import Person

ACCEPTED = Topic("invitations", "somebody accepts my invitation")
DECIDED = Topic("own_requests", "a club decides that I may join its staff, or may not")


async def send_invitation(
    tx: Transaction,
    mailer: Mailer,
    actor: Actor,
    club_id: UUID,
    email: str,
    token: str,
    life: timedelta,
    source: str,
) -> None:
    """Mail the invitation once the caller's transaction is committed. What its maker wrote is not in it, so that
    nobody can have words of their own mailed to strangers; the page shows it."""
    club = await tx.scalar(select(Club.name).where(Club.id == club_id))
    await mailer.post(
        tx,
        Mail(
            kind="invite",
            to=email,
            subject=say("An invitation to the staff of {club}", club=club),
            paragraphs=(
                say("{inviter} invites you to the staff of {club}.", inviter=actor.display_name, club=club),
                say("Open the invitation to see what it is for, and accept it there if you like:"),
            ),
            action=Action(say("Open the invitation"), f"/invites/{token}"),
            closing=(
                say(
                    "It works once, for {life}, and only for whoever signs in with this address.",
                    life=life_words(life),
                ),
                say("If you do not know what this is about, do nothing."),
            ),
            source=source,
        ),
    )


def life_words(life: timedelta) -> str:
    """How long an invitation lives, in whole days where it is some, else in whole hours."""
    hours = round(life / timedelta(hours=1))
    many, unit = (hours // 24, "day") if hours % 24 == 0 else (hours, "hour")
    return f"{many} {unit}" if many == 1 else f"{many} {unit}s"


async def tell_inviter(
    tx: Transaction, mailer: Mailer, inviter_id: UUID, club_id: UUID, name: str, *, is_in: bool
) -> None:
    """Tell whoever made an invitation that it was accepted, if they want to hear of that."""
    inviter = (
        await tx.execute(
            select(Person.email, Club.name, Club.slug)
            .join(Club, Club.id == club_id)
            .where(Person.id == inviter_id, Person.blocked_at.is_(None))
        )
    ).one_or_none()
    if inviter is None or not await wants_mail(tx, inviter_id, ACCEPTED):
        return
    sentence = (
        say(
            "{name} accepted your invitation and is on the staff of {club} now.", name=name, club=inviter.name
        )
        if is_in
        else say(
            "{name} accepted your invitation to {club} and waits for a decision.",
            name=name,
            club=inviter.name,
        )
    )
    await mailer.post(
        tx,
        Mail(
            kind="invite_accepted",
            to=inviter.email,
            subject=say("Your invitation was accepted"),
            paragraphs=(sentence,),
            action=Action(say("See the staff"), f"/c/{inviter.slug}/staff/invites"),
            closing=(say("You choose on your account's page which of these mails you get."),),
        ),
    )


async def tell_requester(
    tx: Transaction, mailer: Mailer, person_id: UUID, club_id: UUID, *, is_in: bool
) -> None:
    """Tell whoever asked to join that somebody decided, if they want to hear of that. What was said about it is not
    in the mail; their page shows it."""
    person = (
        await tx.execute(
            select(Person.email, Club.name)
            .join(Club, Club.id == club_id)
            .where(Person.id == person_id, Person.blocked_at.is_(None))
        )
    ).one_or_none()
    if person is None or not await wants_mail(tx, person_id, DECIDED):
        return
    sentence = (
        say("You are on the staff of {club} now.", club=person.name)
        if is_in
        else say("{club} did not take you onto its staff.", club=person.name)
    )
    await mailer.post(
        tx,
        Mail(
            kind="join_decided",
            to=person.email,
            subject=say("Your request was decided"),
            paragraphs=(sentence,),
            action=Action(say("See your requests"), "/requests"),
            closing=(say("You choose on your account's page which of these mails you get."),),
        ),
    )
