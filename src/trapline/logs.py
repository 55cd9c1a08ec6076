"""Structured logs: one line per event, for people on a terminal, as JSON elsewhere.

A trace id bound with `bind_trace` is in every line that the same task of asyncio writes.
"""

import logging
import sys
from uuid import UUID

import structlog
import structlog.tracebacks
from structlog.contextvars import bind_contextvars, get_contextvars, merge_contextvars
from structlog.typing import FilteringBoundLogger, Processor

from trapline.settings import LogSettings

get_logger = structlog.stdlib.get_logger


def bind_trace(trace_id: UUID) -> None:
    """Give every later log line of this context the trace id."""
    bind_contextvars(trace_id=str(trace_id))


def current_trace() -> UUID | None:
    """Return the trace id that log lines of this context have, if any."""
    found = get_contextvars().get("trace_id")
    return None if found is None else UUID(found)


def configure(settings: LogSettings) -> None:
    """Send our own lines and those of libraries through one formatter to stderr."""
    shared: list[Processor] = [
        merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderer(settings),
            ],
        )
    )
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    logging.basicConfig(handlers=[handler], level=level, force=True)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def _renderer(settings: LogSettings) -> list[Processor]:
    console = settings.format == "console" or (settings.format == "auto" and sys.stderr.isatty())
    if console:
        plain = structlog.dev.plain_traceback
        return [
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)
        ]
    # Without local variables: they would put secrets and whole pages into a line.
    tracebacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False, max_frames=20)
    return [
        structlog.processors.ExceptionRenderer(tracebacks),
        structlog.processors.JSONRenderer(ensure_ascii=False),
    ]


__all__ = ["FilteringBoundLogger", "bind_trace", "configure", "current_trace", "get_logger"]
