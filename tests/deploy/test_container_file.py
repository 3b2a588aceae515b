"""The container file copies what is there, builds with the documented commands, and knows whether its server lives.

It is linted by ``make check``; building it needs a base image, which no test fetches.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.deploy.conftest import PROGRAM, PROJECT, Start, read_until, unit

FILE = PROJECT / "deploy" / "Dockerfile"
BASE = re.compile(r"python:3\.\d+-slim")


def instructions() -> list[tuple[str, str]]:
    """Each instruction with the rest of its line, continued lines joined."""
    text = re.sub(r"\\\n", " ", FILE.read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def of(word: str) -> list[str]:
    return [rest for found, rest in instructions() if found == word]


def copied() -> list[str]:
    """What is copied from the checkout, and not from an earlier stage."""
    here = [shlex.split(rest) for rest in of("COPY") if not rest.startswith("--from")]
    return [source for words in here for source in words[:-1]]


def let_in(path: str) -> bool:
    """Whether the build sees ``path``: the last rule that it or a folder above it meets decides."""
    is_in = True
    above = [path, *(str(parent) for parent in Path(path).parents)]
    for rule in FILE.with_name("Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = rule.removeprefix("!")
        if rule and not rule.startswith("#") and any(fnmatch.fnmatchcase(one, pattern) for one in above):
            is_in = rule.startswith("!")
    return is_in


def commands() -> list[str]:
    return [command.strip() for rest in of("RUN") for command in rest.split("&&")]


def test_what_is_copied_is_in_the_checkout_and_reaches_the_build() -> None:
    assert copied()
    for source in copied():
        assert (PROJECT / source).exists(), source
        assert let_in(source), source
    assert not let_in(".git")
    assert not let_in(".venv")
    assert not let_in("src/lastcall/web/static/built")


def test_the_package_is_built_by_the_commands_of_the_makefile() -> None:
    """So a wheel from a checkout and the one in an image are the same, the pages' scripts in both."""
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8").replace("$(RUN)", ".venv/bin/python")
    build = [command for command in commands() if command.startswith((".venv/", "tools/"))]
    assert len(build) == 3
    for command in build:
        assert command in makefile
    assert "hatchling build -t wheel" in build[-1]


def test_only_what_is_pinned_is_installed_and_nothing_names_a_registry() -> None:
    installs = [command for command in commands() if " install " in command and "pip" in command]
    assert installs
    for command in installs:
        assert "--require-hashes" in command or "--no-deps" in command
    assert "://" not in FILE.read_text(encoding="utf-8")
    bases = [rest.split()[0] for rest in of("FROM") if rest.split()[0] != "installed"]
    assert bases
    assert all(BASE.fullmatch(base) for base in bases)


def test_the_image_runs_unprivileged_and_starts_what_the_units_start() -> None:
    users = of("USER")
    assert users
    assert all(user.isdigit() and user != "0" for user in users)
    (entry,) = (json.loads(rest) for rest in of("ENTRYPOINT"))
    started = {shlex.join([*entry, *json.loads(rest)]) for rest in of("CMD")}
    units = {unit(name).one("ExecStart") for name in ("lastcall.service", "lastcall-collector@.service")}
    assert {command.replace("lastcall", PROGRAM, 1) for command in started} == units


@pytest.mark.kill
def test_the_health_check_tells_a_server_that_answers_from_one_that_is_gone(
    start: Start, database_url: str, tmp_path: Path
) -> None:
    (check,) = (json.loads(rest.partition(" CMD ")[2]) for rest in of("HEALTHCHECK") if rest != "NONE")
    assert check[0] == "python"
    given = {"DATABASE_URL": database_url, "LASTCALL_HOME": str(tmp_path), "LASTCALL_PORT": "0"}
    server = start(["serve"], given)
    address = re.search(r"listening on \S+:(\d+)\)", read_until(server, "Lastcall is at")[-1])
    assert address is not None

    def answers() -> bool:
        environment = {"PATH": os.environ["PATH"], "LASTCALL_PORT": address[1]}
        command = [sys.executable, *check[1:]]
        return subprocess.run(command, env=environment, capture_output=True, timeout=30).returncode == 0

    assert answers()
    server.terminate()
    server.wait(timeout=60)
    assert not answers()
