"""Log lines: JSON to stderr, readable on a terminal. Nothing secret is ever handed to a logger, and what looks
secret is taken out of each finished line.

An error's trace shows lines of source and never the values of variables: among those of a failed request are
the reader's cookie and the collector's key.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog

from lastcall.redaction import redact

# Never with the values of variables, which structlog shows by itself.
_TRACES = structlog.processors.ExceptionRenderer(
    structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
)

QUIET = ("httpcore2",)
"""Loggers that write whole heads of answers at DEBUG, cookies and keys among them: they say no more than WARNING,
whatever the level of the others is."""


def set_up_logs() -> None:
    """Configure structlog and the standard library's logging alike, once a process."""
    readable = sys.stderr.isatty()
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    show: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if readable
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[*shared, _as_it_is if readable else _TRACES, show, _redacted],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, show, _redacted],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def _redacted(_logger: structlog.typing.WrappedLogger, _name: str, line: Any) -> str:
    return redact(str(line))


def _as_it_is(
    _logger: structlog.typing.WrappedLogger, _name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    return event
