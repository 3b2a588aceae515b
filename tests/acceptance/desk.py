"""A club's desk: its staff's program, and collectors, all of whom have nothing but HTTP and their keys."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import httpx2

from lastcall.connections.accounts import NewKey
from lastcall.db.ids import decode_id, encode_id, new_id
from lastcall.deadlines.owner import Done, More, Stop
from lastcall.operations.owners import operation_owners
from lastcall.protocol.constants import PROTOCOL_VERSION
from lastcall.testing.clock import TestClock
from tests.api.bodies import EVIDENCE
from tests.api.v1_kit import Api, Program
from tests.web.conftest import user

GROUP = "grp_1"
WORLD_ID = "wrld_00000000-0000-4000-8000-000000000001"
PLACE = {"worldId": WORLD_ID, "instanceId": f"12345~region(eu)~group({GROUP})~groupAccessType(members)"}


def told(answer: httpx2.Response) -> dict[str, Any]:
    """What a call that went well says."""
    assert answer.status_code < 300, answer.text
    body: dict[str, Any] = answer.json()
    return body


def invitation(number: int) -> dict[str, Any]:
    return {"kind": "invite_member", "targetUserId": user(number)}


@dataclass
class Collector:
    """A collector process of an account: it has a key, its account's VRChat user, and an id of its own."""

    client: httpx2.AsyncClient
    account_id: UUID
    key: str
    place: dict[str, str]
    vrchat_user_id: str = "usr_1"
    worker_id: str = field(default_factory=lambda: encode_id(new_id()))
    journal_id: str = field(default_factory=lambda: encode_id(new_id()))
    lease: dict[str, Any] = field(default_factory=dict)

    def headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.key}",
            "Lastcall-Account": encode_id(self.account_id),
            "Lastcall-Protocol": str(PROTOCOL_VERSION),
        }

    async def __call__(self, call: str, **body: Any) -> httpx2.Response:
        sender = {"workerId": self.worker_id, "vrchatUserId": self.vrchat_user_id}
        return await self.client.post(f"/worker/v1/{call}", headers=self.headers(), json={**sender, **body})

    async def take(self) -> dict[str, Any]:
        """The lease of the club's connection."""
        given = told(await self("lease", **self.place))
        self.lease = {**self.place, "epoch": given["epoch"], "fencingToken": given["fencingToken"]}
        return given

    async def claim(self) -> dict[str, Any] | None:
        """The next operation, or None."""
        found: dict[str, Any] | None = told(await self("claim", lease=self.lease, journalId=self.journal_id))[
            "operation"
        ]
        return found

    async def claimed(self) -> dict[str, Any]:
        """The next operation, which there is; with the reference that later calls carry as ``claim``."""
        found = await self.claim()
        assert found is not None
        return {**found, "claim": self.held(found)}

    def held(self, found: dict[str, Any]) -> dict[str, Any]:
        return {**self.lease, "operationId": found["operationId"], "nonce": found["nonce"]}

    async def authorize(self, found: dict[str, Any], **seen: Any) -> httpx2.Response:
        """Ask for the last word, with evidence of just now."""
        evidence = {**EVIDENCE, **seen}
        friendship = {"targetUserId": found["payload"].get("targetUserId"), "isFriend": True, "ageMs": 0}
        needs = {"friendship": friendship} if found["kind"] == "invite_to_instance" else {}
        return await self("authorize", claim=found["claim"], kind=found["kind"], evidence=evidence, **needs)

    async def submitted(self) -> dict[str, Any]:
        """The next operation, claimed and authorized: its write may be under way."""
        found = await self.claimed()
        assert told(await self.authorize(found))["isAuthorized"]
        return found

    async def complete(self, found: dict[str, Any], **changes: Any) -> httpx2.Response:
        """Report that it went well; ``changes`` replace fields of the claim."""
        return await self("complete", claim={**found["claim"], **changes}, outcome="succeeded", result=PLACE)

    async def before_authorization(self, found: dict[str, Any]) -> dict[str, bool]:
        """Whether each of the steps that stand before the write still passes: all are tried."""
        reject = await self("reject", claim=found["claim"], code="role_scope")
        defer = await self("defer", claim=found["claim"], code="timeout", delayMs=1000)
        authorize = await self.authorize(found)
        return {
            "reject": reject.status_code == 200 and reject.json()["isRecorded"],
            "defer": defer.status_code == 200 and defer.json()["isRecorded"],
            "authorize": authorize.status_code == 200 and authorize.json()["isAuthorized"],
        }


NOTHING_PASSES = {"reject": False, "defer": False, "authorize": False}


@dataclass
class Desk:
    """``owner`` is the owner's program, ``collector`` the account's process, which holds the lease."""

    api: Api
    clock: TestClock
    owner: Program
    collector: Collector

    @property
    def db(self) -> Any:
        return self.api.world.db

    @property
    def club_id(self) -> UUID:
        return self.api.world.club_id

    @property
    def connection_id(self) -> UUID:
        return self.api.world.connection_id

    @property
    def account_id(self) -> UUID:
        return self.api.world.key.account_id

    async def run(self, statement: str, *arguments: object) -> Any:
        return await self.db.pool.fetchval(statement, *arguments)

    def another_collector(self, key: NewKey | None = None, vrchat_user_id: str = "usr_1") -> Collector:
        """Another process, of the same account or the one of that key."""
        mine = self.collector
        given = mine if key is None else replace(mine, account_id=key.account_id, key=key.key)
        return replace(
            given,
            vrchat_user_id=vrchat_user_id,
            worker_id=encode_id(new_id()),
            journal_id=encode_id(new_id()),
        )

    async def call(self, method: str, path: str, **sent: Any) -> httpx2.Response:
        return await self.owner(method, f"/clubs/{self.api.club}{path}", **sent)

    async def queue(self, *payloads: dict[str, Any], schedule: dict[str, Any] | None = None) -> list[str]:
        """Reviewed and queued by the owner, at once or by that schedule."""
        body = {
            "requestId": encode_id(new_id()),
            "payloads": payloads,
            "schedule": schedule or {"kind": "immediate"},
        }
        ids: list[str] = told(await self.call("POST", "/requests", json=body))["operationIds"]
        return ids

    async def at(self, moment: datetime, *payloads: dict[str, Any]) -> list[str]:
        return await self.queue(*payloads, schedule={"kind": "fixed", "dueAt": moment.isoformat()})

    async def submitted(self, number: int = 1) -> dict[str, Any]:
        await self.queue(invitation(number))
        return await self.collector.submitted()

    async def claimed(self, number: int = 1) -> dict[str, Any]:
        await self.queue(invitation(number))
        return await self.collector.claimed()

    async def seen(self, operation_id: str) -> dict[str, Any]:
        """The operation as staff see it."""
        return told(await self.call("GET", f"/operations/{operation_id}"))

    async def state(self, found: dict[str, Any] | str) -> tuple[str, str | None]:
        operation_id = found if isinstance(found, str) else found["operationId"]
        seen = await self.seen(operation_id)
        return seen["state"], seen["code"]

    async def row(self, found: dict[str, Any]) -> Any:
        """Everything that is stored of it."""
        return await self.db.pool.fetchrow(
            "select * from operations where club_id = $1 and id = $2",
            self.club_id,
            decode_id(found["operationId"]),
        )

    async def notices(self) -> list[tuple[str, str, str | None]]:
        """What the owner is told of that did not end well: which operation, how and why."""
        found = [one["operation"] for one in told(await self.call("GET", "/notices"))["items"]]
        return [(one["id"], one["state"], one["code"]) for one in found]

    async def turn(self, name: str) -> None:
        """What is due for that owner is done, to the last of it."""
        owner = next(one for one in operation_owners(self.db, self.api.unsent) if one.name == name)
        result = await owner.run_pass(Stop())
        while isinstance(result, More):
            result = await owner.run_pass(Stop())
        assert isinstance(result, Done), result

    async def pass_by(self, span: timedelta) -> None:
        await self.clock.advance(span)
