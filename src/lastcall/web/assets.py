"""The pages' own files under addresses that change with their content, so that browsers may keep them for
ever.

Our styles, scripts and icons are read from ``static/`` when the server starts; the two third-party scripts
come from ``static/built/``, where ``make assets`` puts them. A checkout that never ran it still serves
every page: forms are plain forms, and what is missing is that pages change by themselves.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
from dataclasses import dataclass
from pathlib import Path

import structlog

STATIC = Path(__file__).parent / "static"
OWN = {".js", ".svg"}
THIRD_PARTY = ("htmx.js", "idiomorph.js")

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Asset:
    content: bytes
    media_type: str


def hashed_name(name: str, content: bytes) -> str:
    """``page.js`` becomes ``page.3f0a….js``."""
    stem, _, suffix = name.partition(".")
    return f"{stem}.{hashlib.sha256(content).hexdigest()[:12]}.{suffix}"


class Assets:
    """Every static file, by the name templates use and by the hashed name browsers ask for."""

    def __init__(self, root: Path = STATIC) -> None:
        self._by_hashed: dict[str, Asset] = {}
        self._hashed: dict[str, str] = {}
        for path in sorted(root.iterdir()):
            if path.suffix in OWN:
                content = path.read_bytes()
                self._add(path.name, hashed_name(path.name, content), content)
        styles = b"\n".join(path.read_bytes() for path in sorted((root / "styles").glob("*.css")))
        self._add("style.css", hashed_name("style.css", styles), styles)
        manifest = root / "built" / "manifest.json"
        built = json.loads(manifest.read_text())["files"] if manifest.is_file() else {}
        for name in THIRD_PARTY:
            if name in built:
                self._add(name, built[name], (root / "built" / built[name]).read_bytes())
        self.is_complete = all(name in self._hashed for name in THIRD_PARTY)
        if not self.is_complete:
            log.warning(
                "page_scripts_missing", advice="Pages do not change by themselves: run `make assets`."
            )

    def _add(self, name: str, hashed: str, content: bytes) -> None:
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        self._hashed[name] = hashed
        self._by_hashed[hashed] = Asset(content, "text/javascript" if name.endswith(".js") else media_type)

    def address(self, name: str) -> str:
        """The path of an asset, for templates."""
        return f"/static/{self._hashed[name]}"

    def find(self, hashed: str) -> Asset | None:
        return self._by_hashed.get(hashed)
