"""The format of log lines: text for people, or one JSON object per line for programs."""

import json
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from neardup.errors import NeardupError
from neardup.settings import Settings

KAFKA_CLIENT: Final = "aiokafka"
FAUST_SERVICES: Final = "neardup_services.worker.faust_app"
"""The module whose name Faust uses for log lines about the starts and stops of its services."""
REPEAT_SECONDS: Final = 30.0
"""Interval between two log lines of the Kafka client with the same message. It retries about ten times per second."""
_MOST_MESSAGES: Final = 256


class JsonFormatter(logging.Formatter):
    """Formats a record as JSON with time, level, logger, message and, if present, the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class OneLine(logging.Filter):
    """Drops the tracebacks of errors that neardup raises deliberately, and keeps the tracebacks of bugs."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], NeardupError):
            record.exc_info = None
        return True


class RateLimit(logging.Filter):
    """Passes each message of the Kafka client at most once per interval, with the number of suppressed ones.

    Two records have the same message if they differ only in their arguments. Records of other loggers always pass.
    """

    def __init__(self, seconds: float = REPEAT_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seconds = seconds
        self._clock = clock
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}
        """For each logger and message, the time when it last passed and the number suppressed since."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] != KAFKA_CLIENT:
            return True
        key, now = (record.name, str(record.msg)), self._clock()
        passed, left_out = self._seen.pop(key, (None, 0))
        if passed is not None and now - passed < self._seconds:
            self._seen[key] = passed, left_out + 1
            return False
        if len(self._seen) >= _MOST_MESSAGES:
            # Messages that are formatted before they are logged all differ, so old ones are dropped.
            del self._seen[next(iter(self._seen))]
        self._seen[key] = now, 0
        if left_out:
            record.msg, record.args = f"{record.getMessage()} (and {left_out} more like this)", None
        return True


def logging_config(settings: Settings) -> dict[str, Any]:
    """Return the configuration for logging.config.dictConfig. Everything goes to standard error."""
    formatters: dict[str, object] = {
        "text": {"format": "%(asctime)s %(levelname)-7s %(name)s: %(message)s"},
        "json": {"()": JsonFormatter},
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": formatters,
        "filters": {"one-line": {"()": OneLine}, "rate-limit": {"()": RateLimit}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": settings.log_format,
                "filters": ["rate-limit", "one-line"],
                "stream": "ext://sys.stderr",
            }
        },
        "root": {"handlers": ["stderr"], "level": settings.log_level.upper()},
        "loggers": {
            # The runner reports outages itself. Warnings of the Kafka client pass once per interval and cause.
            KAFKA_CLIENT: {"level": "WARNING"},
            "aiokafka.cluster": {"level": "CRITICAL"},
            "aiokafka.consumer.group_coordinator": {"level": "CRITICAL"},
            # Faust logs the life cycle of its services, also under the names of the modules that define them.
            "faust": {"level": "WARNING"},
            "mode": {"level": "WARNING"},
            FAUST_SERVICES: {"level": "WARNING"},
        },
    }
