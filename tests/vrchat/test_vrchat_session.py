"""Signing in, staying signed in, and stopping when VRChat says no."""

from __future__ import annotations

import stat
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from lastcall.clock import SYSTEM_CLOCK
from lastcall.errors import Invalid
from lastcall.vrchat import errors
from lastcall.vrchat.cookies import Cookies, cookie_file, key_file
from lastcall.vrchat.session import Credentials, Session
from lastcall.vrchat.simulator import BOT_PASSWORD, BOT_TOTP_SECRET, BOT_USERNAME, Simulator, faults
from lastcall.vrchat.simulator.edits import edit
from lastcall.vrchat.totp import totp
from lastcall.vrchat.transport import Transport, user_agent_for

GOOD = Credentials(BOT_USERNAME, BOT_PASSWORD, BOT_TOTP_SECRET)


def fresh_transport(simulator: Simulator, cookies: Cookies | None = None) -> Transport:
    return Transport(simulator.url, user_agent_for("ops@example.org"), cookies or Cookies(), SYSTEM_CLOCK)


async def no_code(method: str) -> str:
    raise AssertionError(f"nobody should be asked for a {method} code")


def test_the_one_time_password_is_that_of_the_standard() -> None:
    """The SHA-1 vectors of RFC 6238, appendix B, cut to six digits."""
    secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
    expected = {59: "287082", 1_111_111_109: "081804", 1_234_567_890: "005924", 20_000_000_000: "353130"}
    for seconds, code in expected.items():
        assert totp(secret, datetime.fromtimestamp(seconds, UTC)) == code


def test_a_secret_that_is_no_base32_is_refused_with_advice() -> None:
    with pytest.raises(Invalid, match="base32"):
        totp("not base32!", SYSTEM_CLOCK.wall())


async def test_signing_in_with_a_typed_code(simulator: Simulator) -> None:
    transport = fresh_transport(simulator)
    asked: list[str] = []

    async def type_code(method: str) -> str:
        asked.append(method)
        return f" {totp(BOT_TOTP_SECRET, SYSTEM_CLOCK.wall())}\n"

    session = Session(transport, simulator.seed.bot_id)
    identity = await session.sign_in(Credentials(BOT_USERNAME, BOT_PASSWORD), type_code)
    await transport.close()
    assert identity.user_id == simulator.seed.bot_id
    assert asked == ["totp"]


async def test_signing_in_with_a_mailed_code(simulator: Simulator) -> None:
    bot = simulator.world.users[simulator.seed.bot_id]
    bot.totp_secret, bot.mails_code = None, True
    transport = fresh_transport(simulator)

    async def read_mail(method: str) -> str:
        assert method == "emailOtp"
        assert bot.mailed_code is not None
        return bot.mailed_code

    session = Session(transport, bot.id)
    assert (await session.sign_in(Credentials(BOT_USERNAME, BOT_PASSWORD), read_mail)).user_id == bot.id
    assert (await session.identity()).value.display_name == "Lastcall"
    await transport.close()


@pytest.mark.parametrize(
    ("credentials", "sentence"),
    [
        (Credentials(BOT_USERNAME, "wrong", BOT_TOTP_SECRET), "user name and password"),
        (Credentials("nobody", BOT_PASSWORD, BOT_TOTP_SECRET), "user name and password"),
        (Credentials(BOT_USERNAME, BOT_PASSWORD, "GEZDGNBVGY3TQOJQ"), "code"),
    ],
)
async def test_refused_credentials_are_said_and_not_tried_again(
    simulator: Simulator, credentials: Credentials, sentence: str
) -> None:
    transport = fresh_transport(simulator)
    with pytest.raises(errors.Authentication, match=sentence):
        await Session(transport, simulator.seed.bot_id).sign_in(credentials, no_code)
    await transport.close()
    paths = [arrival.path for arrival in simulator.arrivals]
    assert paths.count("/auth/user") == 1


def test_credentials_are_not_shown() -> None:
    assert BOT_PASSWORD not in repr(GOOD)
    assert BOT_TOTP_SECRET not in repr(GOOD)


async def test_after_401_one_more_look_and_then_silence(simulator: Simulator, transport: Transport) -> None:
    session = Session(transport, simulator.seed.bot_id)
    edit(
        simulator.clock,
        simulator.world,
        simulator.seed.group_id,
        "end_sessions",
        user_id=simulator.seed.bot_id,
    )
    with pytest.raises(errors.Authentication) as first:
        await session.identity()
    assert not isinstance(first.value, errors.AuthRequired)
    with pytest.raises(errors.AuthRequired):
        await session.probe()
    assert len(simulator.arrivals) == 2
    for ask in (session.identity, session.probe):
        with pytest.raises(errors.AuthRequired) as caught:
            await ask()
        assert caught.value.stops_account
    assert len(simulator.arrivals) == 2
    await session.sign_in(GOOD, no_code)
    assert (await session.identity()).value.user_id == simulator.seed.bot_id


@pytest.mark.parametrize(
    ("said", "known"),
    [('"2026-08-01"', date(2026, 8, 1)), ('"soon"', None), ("12", None), ("null", None), ("[]", None)],
)
async def test_the_age_of_the_account_is_known_where_vrchat_says_it_and_no_reason_to_stop(
    simulator: Simulator, transport: Transport, said: str, known: date | None
) -> None:
    bot_id = simulator.seed.bot_id
    simulator.arm(faults.say(f'{{"id":"{bot_id}","displayName":"Lastcall","date_joined":{said}}}'))
    identity = (await Session(transport, bot_id).identity()).value
    assert (identity.user_id, identity.joined_on) == (bot_id, known)


async def test_a_single_401_does_not_end_the_session(simulator: Simulator, transport: Transport) -> None:
    simulator.arm(faults.answer(401), path="/auth/user")
    session = Session(transport, simulator.seed.bot_id)
    with pytest.raises(errors.Authentication):
        await session.identity()
    assert (await session.probe()).value.user_id == simulator.seed.bot_id
    assert (await session.identity()).value.user_id == simulator.seed.bot_id
    assert len(simulator.arrivals) == 3


async def test_a_proxys_401_does_not_end_the_session(simulator: Simulator, transport: Transport) -> None:
    session = Session(transport, simulator.seed.bot_id)
    simulator.arm(faults.proxy_page(401, applied=False), times=2)
    with pytest.raises(errors.Transient):
        await session.identity()
    simulator.faults.clear()
    assert (await session.identity()).value.user_id == simulator.seed.bot_id


async def test_another_account_than_the_expected_one_stops_the_account(
    simulator: Simulator, transport: Transport
) -> None:
    session = Session(transport, simulator.seed.owner_id)
    with pytest.raises(errors.WrongAccount, match="another VRChat account") as caught:
        await session.identity()
    assert caught.value.stops_account
    with pytest.raises(errors.AuthRequired):
        await session.identity()
    assert len(simulator.arrivals) == 1


async def test_signing_in_as_another_account_leaves_no_session_behind(simulator: Simulator) -> None:
    cookies = Cookies()
    transport = fresh_transport(simulator, cookies)
    with pytest.raises(errors.WrongAccount):
        await Session(transport, simulator.seed.owner_id).sign_in(GOOD, no_code)
    await transport.close()
    assert cookies.header() is None


async def test_without_a_session_nothing_is_asked(simulator: Simulator) -> None:
    transport = fresh_transport(simulator)
    with pytest.raises(errors.AuthRequired):
        await Session(transport, simulator.seed.bot_id).identity()
    await transport.close()
    assert simulator.arrivals == []


async def test_too_many_sign_ins_lock_the_account_for_hours(simulator: Simulator) -> None:
    transport = fresh_transport(simulator)
    session = Session(transport, simulator.seed.bot_id)
    for _ in range(10):
        await session.sign_in(GOOD, no_code)
    with pytest.raises(errors.RateLimit) as caught:
        await session.sign_in(GOOD, no_code)
    await transport.close()
    assert caught.value.retry_after == 4 * 3600


async def test_signing_out_ends_the_session_on_both_sides(simulator: Simulator, transport: Transport) -> None:
    session = Session(transport, simulator.seed.bot_id)
    await session.sign_out()
    assert simulator.world.sessions == {}
    with pytest.raises(errors.AuthRequired):
        await session.probe()


# ------------------------------------------------------------------------------------------ the cookie file


async def test_the_session_outlives_the_process_without_a_new_sign_in(
    simulator: Simulator, tmp_path: Path
) -> None:
    key, path = key_file(tmp_path / "state" / "key"), tmp_path / "state" / "session"
    first = fresh_transport(simulator, cookie_file(path, key))
    await Session(first, simulator.seed.bot_id).sign_in(GOOD, no_code)
    await first.close()
    second = fresh_transport(simulator, cookie_file(path, key_file(tmp_path / "state" / "key")))
    identity = await Session(second, simulator.seed.bot_id).identity()
    await second.close()
    assert identity.value.user_id == simulator.seed.bot_id
    assert len(simulator.world.users[simulator.seed.bot_id].sign_ins) == 1
    for file in (path, tmp_path / "state" / "key"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert b"authcookie" not in path.read_bytes()


def test_a_session_file_of_another_key_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "session"
    cookie_file(path, Fernet.generate_key()).remember(["auth=secret; Path=/"])
    before = path.read_bytes()
    with pytest.raises(Invalid, match="cannot be read") as caught:
        cookie_file(path, Fernet.generate_key())
    assert "sign in again" in caught.value.advice
    assert path.read_bytes() == before


def test_only_the_sessions_own_cookies_are_kept_and_emptied_ones_forgotten() -> None:
    saved: list[dict[str, str]] = []
    cookies = Cookies(save=lambda values: saved.append(dict(values)))
    cookies.remember(["auth=a; Path=/; HttpOnly", "__cf_bm=x; Path=/", "twoFactorAuth=t; Path=/", "=;;"])
    assert cookies.header() == "auth=a; twoFactorAuth=t"
    cookies.remember(["auth=a; Path=/"])
    cookies.remember(["auth=; Path=/; Max-Age=0"])
    assert cookies.header() == "twoFactorAuth=t"
    cookies.forget()
    assert cookies.header() is None
    assert saved == [{"auth": "a", "twoFactorAuth": "t"}, {"twoFactorAuth": "t"}, {}]
