"""Pinned versions carry hashes and no download address, so that any mirror of the registries will do."""

from __future__ import annotations

import sys
from pathlib import Path

LOCKS = [*sorted(Path("constraints").glob("*.txt")), Path("package-lock.json")]


def main() -> int:
    complaints = []
    for lock in LOCKS:
        text = lock.read_text(encoding="utf-8")
        if "://" in text.replace("https://github.com/sponsors", "").replace("https://opencollective.com", ""):
            complaints.append(
                f"{lock} names a download address; make it anew with `make locks` (or npm with .npmrc)."
            )
        if lock.suffix == ".txt" and "--hash=sha256:" not in text:
            complaints.append(f"{lock} has no hashes; make it anew with `make locks`.")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
