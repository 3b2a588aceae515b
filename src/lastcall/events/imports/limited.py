"""The program of the reading process: takes its limits first, then reads (``reader.main``)."""

from __future__ import annotations

import sys


def main() -> None:
    """``argv`` holds seconds of the processor and bytes of memory. Systems without such limits have the parent's
    clock alone."""
    seconds, memory = int(sys.argv[1]), int(sys.argv[2])
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    from lastcall.events.imports.reader import main as read

    read()


if __name__ == "__main__":
    main()
