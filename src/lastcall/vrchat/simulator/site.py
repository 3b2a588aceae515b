"""What the endpoints share: the world, the ledger, the clock, and who is asking."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

from lastcall.clock import Clock
from lastcall.vrchat.simulator.ledger import Ledger
from lastcall.vrchat.simulator.messages import Reply, Request, flat_refusal
from lastcall.vrchat.simulator.model import User, World

WINDOW = 60.0
"""Seconds over which requests are counted."""

OVERLOAD = 3
"""Past this many times the limit VRChat sends garbage instead of a 429."""


@dataclass
class Site:
    """``requests_per_minute`` is for each account (or address without one); 0 switches the limit off."""

    world: World
    ledger: Ledger
    clock: Clock
    requests_per_minute: int = 0
    _seen: dict[str, deque[float]] = field(default_factory=dict)

    def now(self) -> datetime:
        return self.clock.wall()

    def session_user(self, request: Request) -> User | None:
        """Whose ``auth`` cookie came with the request, second factor or not."""
        user_id = self.world.sessions.get(request.cookies().get("auth", ""))
        return self.world.users.get(user_id) if user_id is not None else None

    def needs_second_factor(self, request: Request, user: User) -> bool:
        """Whether this session still owes one."""
        if user.totp_secret is None and not user.mails_code:
            return False
        return self.world.second_factors.get(request.cookies().get("twoFactorAuth", "")) != user.id

    def limited(self, request: Request) -> Reply | None:
        """The answer to a request too many, or ``None``. Far past the limit it is garbage, as with VRChat
        itself."""
        if self.requests_per_minute == 0:
            return None
        user = self.session_user(request)
        seen = self._seen.setdefault(user.id if user is not None else "", deque())
        now = self.clock.boot()
        while seen and seen[0] <= now - WINDOW:
            seen.popleft()
        seen.append(now)
        if len(seen) <= self.requests_per_minute:
            return None
        if len(seen) > OVERLOAD * self.requests_per_minute:
            return Reply(200, b"\x00\x1f<<upstream>>", content_type="application/json")
        wait = max(1, round(seen[0] + WINDOW - now))
        return flat_refusal(429, "Too many requests\u01c3", (("Retry-After", str(wait)),))
