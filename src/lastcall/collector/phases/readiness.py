"""What the group grants the account now, so that the club sees what is missing before an action fails."""

from __future__ import annotations

from lastcall.collector.passes import Pass


async def run(current: Pass) -> None:
    """Report this pass's look at the group, or one made for it.

    With analytics it does not wait for a request: at two a minute the aggregates come first, and their look serves
    (COL-02). Without, it is what somebody asked the pass for.
    """
    look = current.fresh_look()
    if look is None:
        until = current.account.clock.boot() if current.has_analytics else current.until
        with await current.hold(1, until) as held:
            look = await current.look_at_group(held)
    await current.report(look)


def is_wanted(current: Pass) -> bool:
    """Once a pass; without analytics only where the pass had nothing else to do, because then a look was asked for."""
    return not current.is_reported and (current.has_analytics or not current.has_worked)
