"""The systemd units start real commands with settings that exist, stop them in time, and never hammer anybody."""

from __future__ import annotations

import contextlib
import http.client
import re
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from tests.deploy.conftest import INSTANCE, SYSTEMD, Start, read_until, settings_of, unit

from lastcall.cli.server import FINISH_SECONDS
from lastcall.collector.config import config_from
from lastcall.collector.main import NOT_SIGNED_IN
from lastcall.db.embedded.server import STOP_TIMEOUT
from lastcall.protocol.constants import CALL_TIMEOUT, TRANSPORT_TIMEOUT
from lastcall.settings import load

SERVER = "lastcall.service"
COLLECTOR = "lastcall-collector@.service"


def signed_in(simulator: subprocess.Popen[str]) -> dict[str, str]:
    """The settings with which a collector signs in at the simulator, as that prints them."""
    said = "".join(read_until(simulator, "sign-in"))
    url = re.search(r"is at (\S+)", said)
    sign_in = re.search(r"sign-in +(\S+), password (\S+), authenticator secret (\S+)", said)
    assert url is not None
    assert sign_in is not None
    return {
        "LASTCALL_VRCHAT_URL": url[1],
        "LASTCALL_VRCHAT_USERNAME": sign_in[1],
        "LASTCALL_VRCHAT_PASSWORD": sign_in[2],
        "LASTCALL_VRCHAT_TOTP_SECRET": sign_in[3],
    }


def simulator_of(start: Start, folder: Path) -> subprocess.Popen[str]:
    return start(["simulator", "--port", "0"], {"LASTCALL_HOME": str(folder / "simulator")})


@pytest.mark.kill
def test_the_server_starts_as_its_unit_says_answers_and_stops_well_in_its_time(
    start_unit: Start, database_url: str
) -> None:
    given = settings_of("server.env") | {"DATABASE_URL": database_url, "LASTCALL_PORT": "0"}
    server = start_unit(SERVER, given)
    address = re.search(r"listening on (\S+):(\d+)\)", read_until(server, "Lastcall is at")[-1])
    assert address is not None
    with contextlib.closing(http.client.HTTPConnection(address[1], int(address[2]), timeout=10)) as client:
        client.request("GET", "/ops/health")
        assert client.getresponse().read() == b"ok"
    server.terminate()
    assert server.wait(timeout=unit(SERVER).seconds("TimeoutStopSec")) == 0


@pytest.mark.kill
def test_a_collector_starts_as_its_unit_says_waits_for_a_server_and_stops_well_in_its_time(
    start: Start, start_unit: Start, tmp_path: Path
) -> None:
    """Its state lies where systemd made the folder, and no other user can look into it."""
    sign_in = signed_in(simulator_of(start, tmp_path))
    given = settings_of("collector.env") | sign_in | {"LASTCALL_SERVER_URL": "http://127.0.0.1:1"}
    collector = start_unit(COLLECTOR, given)
    read_until(collector, '"event": "server"', of="stderr")
    state = tmp_path / "lastcall-collector" / INSTANCE / "collector"
    assert (state / "worker-id").is_file()
    assert state.stat().st_mode & 0o077 == 0
    collector.terminate()
    assert collector.wait(timeout=unit(COLLECTOR).seconds("TimeoutStopSec")) == 0


@pytest.mark.kill
def test_a_collector_whose_sign_in_was_refused_ends_as_its_unit_expects_and_is_not_started_again(
    start: Start, start_unit: Start, tmp_path: Path
) -> None:
    """Each start would be one more refused sign-in; a wrong setting reaches nobody, and is looked at again."""
    sign_in = signed_in(simulator_of(start, tmp_path)) | {"LASTCALL_VRCHAT_PASSWORD": "wrong"}
    collector = start_unit(COLLECTOR, settings_of("collector.env") | sign_in)
    _, said = collector.communicate(timeout=60)
    assert "VRChat refused this user name and password." in said
    assert str(collector.returncode) == unit(COLLECTOR).one("RestartPreventExitStatus")
    assert collector.returncode == NOT_SIGNED_IN


@pytest.mark.parametrize("name", ["server.env", "collector.env"])
def test_every_setting_that_an_environment_file_sets_or_shows_exists_and_has_a_right_value(
    name: str, tmp_path: Path
) -> None:
    settings = load(settings_of(name, with_examples=True), tmp_path)
    if name == "collector.env":
        assert len(config_from(settings).accounts) == 2
    else:
        assert settings.is_https


def test_what_is_stopped_gets_the_time_that_it_may_need() -> None:
    """A server: what is under way, then its database, asked in three ways. A collector: one write is authorized, sent,
    reported and its lease given back, and what waits is tried once more."""
    server = timedelta(seconds=FINISH_SECONDS + STOP_TIMEOUT + 5 + 5)
    collector = TRANSPORT_TIMEOUT + 4 * CALL_TIMEOUT
    assert unit(SERVER).seconds("TimeoutStopSec") > server.total_seconds()
    assert unit(COLLECTOR).seconds("TimeoutStopSec") > collector.total_seconds()


@pytest.mark.parametrize("name", [SERVER, COLLECTOR])
def test_a_unit_signals_the_main_process_alone_and_keeps_its_starts_apart(name: str) -> None:
    service = unit(name)
    assert service.one("KillMode") == "mixed"
    assert service.one("Restart") == "on-failure"
    assert service.seconds("RestartSec") >= 10
    assert "WatchdogSec" not in service.values  # The product notifies nobody.


def test_secrets_come_from_files_that_no_unit_holds_and_no_service_user_owns() -> None:
    for path in sorted(SYSTEMD.glob("*.service")):
        service = unit(path.name)
        assert service.one("EnvironmentFile").startswith("/etc/lastcall/")
        assert not re.search(r"KEY|PASSWORD|SECRET|DATABASE_URL", "".join(service.values["Environment"]))


def test_each_unit_runs_as_a_user_that_the_sysusers_file_makes() -> None:
    made = {
        line.split()[1] for line in (SYSTEMD / "sysusers.conf").read_text().splitlines() if line[:2] == "u "
    }
    assert {unit(name).one("User") for name in (SERVER, COLLECTOR)} == made
