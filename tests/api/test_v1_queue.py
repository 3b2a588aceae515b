"""What programs do with the queue and its events, from one call to the next."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from tests.api.v1_kit import Api, Program, check, open_api
from tests.api.v1_things import POST, START
from tests.events.calendars import calendar, vevent
from tests.web.conftest import user

from lastcall.api.v1.requests import BODY_BYTES_MOST
from lastcall.db.database import Database
from lastcall.db.ids import encode_id, new_id

NEXT_WEEK = (datetime.now(UTC) + timedelta(days=7)).replace(microsecond=0)


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    async with open_api(database) as api:
        yield api


def told(answer: httpx2.Response) -> Any:
    assert answer.status_code < 300, answer.text
    return answer.json()


def invitations(*numbers: int) -> list[dict[str, str]]:
    return [{"kind": "invite_member", "targetUserId": user(number)} for number in numbers]


async def an_event(owner: Program, club: str) -> dict[str, Any]:
    time = {"kind": "timed", "startsAt": NEXT_WEEK.isoformat()}
    event = {"title": "Night", "zone": "UTC", "time": time, "publication": "published"}
    made: dict[str, Any] = told(await owner("POST", f"/clubs/{club}/events", json=event))
    return made


async def test_what_is_timed_by_an_event_is_queued_at_the_time_that_was_reviewed_and_found_by_that_event(
    api: Api,
) -> None:
    owner, club = await api.program("owner"), f"/clubs/{api.club}"
    event = await an_event(owner, api.club)
    assert [one["id"] for one in told(await owner("GET", f"{club}/events/timed?search=night"))["items"]] == [
        event["id"]
    ]
    due_at = NEXT_WEEK - timedelta(minutes=30)
    schedule = {"kind": "event_relative", "eventId": event["id"], "offsetMs": -1_800_000}
    asked = {"requestId": "queue-request-1", "payloads": invitations(1, 2)}
    for reviewed, code in ((due_at + timedelta(seconds=1), "event_moved"), (due_at, None)):
        body = {**asked, "schedule": {**schedule, "reviewedDueAt": reviewed.isoformat()}}
        answer = await owner("POST", f"{club}/requests", json=body)
        if code:
            check(answer, 409, code)
    queued = told(answer)
    # A retry may say the time that was right when it was tried first.
    body["schedule"]["reviewedDueAt"] = NEXT_WEEK.isoformat()
    assert told(await owner("POST", f"{club}/requests", json=body)) == {**queued, "isReplay": True}
    body["payloads"] = invitations(1)
    check(await owner("POST", f"{club}/requests", json=body), 409, "request_id_used")
    found = told(await owner("GET", f"{club}/operations?eventId={event['id']}"))["items"]
    assert [one["id"] for one in found] == queued["operationIds"]
    assert {(one["scheduleKind"], one["offsetMs"], one["eventId"]) for one in found} == {
        ("event_relative", -1_800_000, event["id"])
    }
    assert told(await owner("GET", f"{club}/operations?search={user(2)}"))["items"] == found[1:]
    assert told(await owner("GET", f"{club}/operations?state=claimed"))["items"] == []
    check(await owner("GET", f"{club}/operations?search=somebody"), 422, "search_invalid")
    far = "9999-12-31T23:59:59Z"
    spread = told(await owner("GET", f"{club}/forecast?kind=invite_member&count=100&dueAt={far}"))
    assert spread["inTime"] + spread["missed"] == 100


async def test_an_edit_names_the_revision_that_was_seen_and_a_request_is_stopped_as_a_whole(api: Api) -> None:
    owner, club = await api.program("owner"), f"/clubs/{api.club}"
    asked = {"requestId": "queue-request-2", "payloads": invitations(1, 2, 3)}
    queued = told(await owner("POST", f"{club}/requests", json=asked))
    first = f"{club}/operations/{queued['operationIds'][0]}"
    schedule = {"kind": "fixed", "dueAt": NEXT_WEEK.isoformat()}
    edit = {"revision": 1, "payload": invitations(4)[0], "schedule": schedule}
    assert told(await owner("PUT", first, json=edit))["revision"] == 2
    stale = check(await owner("PUT", first, json=edit), 409, "revision_stale")
    assert (stale["fresh"]["revision"], stale["fresh"]["payload"]) == (2, {"targetUserId": user(4)})
    kept = told(await owner("GET", f"{first}/revisions"))["items"]
    assert [(one["revision"], one["payload"]["targetUserId"]) for one in kept] == [(2, user(4)), (1, user(1))]
    moments = told(await owner("GET", f"{first}/timeline"))["items"]
    assert [(one["what"], one["byName"]) for one in moments] == [("queued", "Owner"), ("edited", "Owner")]
    explained = told(await owner("GET", f"{first}/explanation"))
    assert (explained["nextAt"], explained["why"]) == (explained["operation"]["dueAt"], None)
    request = f"{club}/requests/{queued['id']}"
    assert told(await owner("GET", request))["counts"] == {"pending": 3}
    assert told(await owner("POST", f"{request}/cancel"))["cancelled"] == 3
    again = told(await owner("POST", f"{request}/cancel"))
    assert (again["cancelled"], again["left"]) == (0, 0)
    over = told(await owner("GET", request))
    assert (over["counts"], over["settled"]) == ({"cancelled": 3}, 3)


async def test_a_draft_is_queued_once_however_often_it_is_asked_for(api: Api) -> None:
    owner, other = await api.program("owner"), await api.program("stranger")
    draft = f"/clubs/{api.club}/post-drafts/{encode_id(new_id())}"
    made = told(await owner("PUT", draft, json={"fields": POST}))
    assert (made["revision"], made["schedule"]) == (1, {"kind": "immediate"})
    assert (
        told(await owner("PUT", draft, json={"fields": {**POST, "title": "Later"}, "seen": 1}))["revision"]
        == 2
    )
    stale = check(await owner("PUT", draft, json={"fields": POST, "seen": 1}), 409, "revision_stale")
    assert stale["fresh"]["fields"]["title"] == "Later"
    check(await other("GET", draft), 404, "club_unknown")
    check(await owner("POST", f"{draft}/queue", json={"revision": 1}), 409, "revision_stale")
    queued = told(await owner("POST", f"{draft}/queue", json={"revision": 2}))
    again = told(await owner("POST", f"{draft}/queue", json={"revision": 2}))
    assert again == {**queued, "isReplay": True}
    assert told(await owner("GET", draft))["requestId"] == queued["id"]
    check(await owner("DELETE", f"{draft}?seen=2"), 409, "draft_queued")
    assert told(await owner("GET", draft))["requestId"] == queued["id"], "it is the record of what was queued"


async def test_a_calendar_becomes_events_only_when_it_is_applied(api: Api) -> None:
    owner, club = await api.program("owner"), f"/clubs/{api.club}"
    large = "X-PADDING:" + "x" * BODY_BYTES_MOST
    content = calendar(
        vevent("one", START, "SUMMARY:Night"), vevent("two", START, "SUMMARY:Two", large)
    ).decode()
    document = told(await owner("POST", f"{club}/imports/file", json={"name": "all.ics", "content": content}))
    assert [(one["title"], one["change"]) for one in document["items"]] == [("Night", "new"), ("Two", "new")]
    assert told(await owner("GET", f"{club}/events"))["items"] == []
    at = f"{club}/imports/{document['id']}"
    first, second = (one["id"] for one in document["items"])
    applied = told(await owner("POST", f"{at}/apply", json={"items": [first], "seen": 1}))
    assert (applied["applied"], applied["refused"]) == (1, [])
    stale = check(
        await owner("POST", f"{at}/skip", json={"items": [second], "seen": 1}), 409, "import_reviewed"
    )
    seen = stale["fresh"]["revision"]
    skipped = told(await owner("POST", f"{at}/skip", json={"items": [second], "seen": seen}))
    assert [one["decision"] for one in skipped["items"]] == ["applied", "skipped"]
    assert [one["title"] for one in told(await owner("GET", f"{club}/events"))["items"]] == ["Night"]


async def test_a_time_in_a_zone_is_told_with_what_the_clock_does_that_day(api: Api) -> None:
    owner = await api.program("owner")
    for query, at, change in (
        ("local=2026-07-01T20:00", "2026-07-01T18:00:00Z", None),
        ("local=2026-03-29T02:30", "2026-03-29T01:30:00Z", "gap"),
        ("local=2026-10-25T02:30", "2026-10-25T00:30:00Z", "fold_first"),
        ("local=2026-10-25T02:30&second=true", "2026-10-25T01:30:00Z", "fold_second"),
    ):
        found = told(await owner("GET", f"/local-time?{query}&zone=Europe/Berlin"))
        assert (found["at"], found["change"], bool(found["words"])) == (at, change, change is not None)
    check(await owner("GET", "/local-time?local=2026-07-01T20:00Z&zone=UTC"), 422, "local_time_malformed")
    check(
        await owner("GET", "/local-time?local=0001-01-01T00:00&zone=Asia/Tokyo"), 422, "local_time_malformed"
    )
    check(await owner("GET", "/local-time?local=2026-07-01T20:00&zone=Mars"), 422, "zone_unknown")
