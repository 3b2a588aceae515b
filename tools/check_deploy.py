"""What ``deploy/`` hands to other programs is what they understand: hadolint reads the container file, systemd the
units, each as an instance and with a program that is there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DEPLOY = Path("deploy")
MOST_EXPOSED = "20"
"""Tenths of systemd's score from 0 to 10 for what a taken-over service could reach; it calls 2.0 and below *OK*."""


def main() -> int:
    complaints = _container_file() + _units()
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return bool(complaints)


def _container_file() -> list[str]:
    # Of the same environment as this program.
    hadolint = Path(sys.executable).with_name("hadolint")
    return _said(str(hadolint), "--no-color", str(DEPLOY / "Dockerfile"))


def _units() -> list[str]:
    if shutil.which("systemd-analyze") is None:
        print("There is no systemd-analyze here: the units of deploy/systemd are not verified.")
        return []
    with tempfile.TemporaryDirectory() as scratch:
        copies = []
        for unit in sorted(DEPLOY.glob("systemd/*.service")):
            # Only a program that exists passes; an instance of a template needs a name.
            copy = Path(scratch) / unit.name.replace("@.", "@night-shift.")
            copy.write_text(
                unit.read_text(encoding="utf-8").replace("/srv/lastcall/.venv/bin/lastcall", sys.executable)
            )
            copies.append(str(copy))
        # An unknown key is said and forgiven: whatever it says is a complaint.
        said = _said("systemd-analyze", "verify", "--man=no", *copies)
        for checked in copies:
            command = ("security", "--offline=yes", f"--threshold={MOST_EXPOSED}", "--no-pager", checked)
            said += _said("systemd-analyze", *command, is_quiet=False)
    return said


def _said(*command: str, is_quiet: bool = True) -> list[str]:
    """The lines of a program that finds fault. ``is_quiet``: one that says nothing when it finds none."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0 and not (is_quiet and done.stdout + done.stderr):
        return []
    return (done.stdout + done.stderr).splitlines() or [f"{command[0]} failed with {done.returncode}."]


if __name__ == "__main__":
    sys.exit(main())
