"""Log lines: text for people, one JSON object a line for machines."""

import json
import logging
from datetime import UTC, datetime
from typing import Any

from neardup.errors import NeardupError
from neardup.settings import Settings


class JsonFormatter(logging.Formatter):
    """time, level, logger, message, and the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class OneLine(logging.Filter):
    """Our own errors explain themselves: drop their tracebacks, keep those of bugs."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], NeardupError):
            record.exc_info = None
        return True


def logging_config(settings: Settings) -> dict[str, Any]:
    """For logging.config.dictConfig; everything goes to standard error."""
    formatters: dict[str, Any] = {
        "text": {"format": "%(asctime)s %(levelname)-7s %(name)s: %(message)s"},
        "json": {"()": JsonFormatter},
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": formatters,
        "filters": {"one-line": {"()": OneLine}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": settings.log_format,
                "filters": ["one-line"],
                "stream": "ext://sys.stderr",
            }
        },
        "root": {"handlers": ["stderr"], "level": settings.log_level.upper()},
        "loggers": {
            # The runner says once, and with more sense, what the Kafka client says many times.
            "aiokafka": {"level": "WARNING"},
            "aiokafka.cluster": {"level": "CRITICAL"},
            "aiokafka.consumer.group_coordinator": {"level": "CRITICAL"},
            "faust": {"level": "WARNING"},
            "mode": {"level": "WARNING"},
        },
    }
