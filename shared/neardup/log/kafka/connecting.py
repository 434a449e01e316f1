"""Connections to a broker: client options, and explanations of failures."""

import asyncio
import logging
import ssl
from typing import Any, Final

from aiokafka.conn import create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
)
from aiokafka.helpers import create_ssl_context

from neardup.errors import BrokerUnreachable, NotAuthorized
from neardup.settings import Settings

ADMIN_MS: Final = 5_000
"""Timeout in milliseconds of queries about the cluster."""
REFUSED: Final = (TopicAuthorizationFailedError, GroupAuthorizationFailedError, ClusterAuthorizationFailedError)
"""Exceptions of aiokafka for missing rights."""
_METADATA_MS: Final = 30_000
_CANCEL_SECONDS: Final = 1.0
"""Maximum wait for a cancelled client."""

logger = logging.getLogger(__name__)


def connection(settings: Settings) -> dict[str, Any]:
    """Return the options that every aiokafka client needs to connect."""
    options: dict[str, Any] = {
        "bootstrap_servers": [server.strip() for server in settings.broker.split(",")],
        "security_protocol": settings.security_protocol,
        "request_timeout_ms": int(settings.request_timeout_seconds * 1000),
        "metadata_max_age_ms": _METADATA_MS,
        "client_id": f"{settings.prefix}-{settings.instance}" if settings.instance else settings.prefix,
    }
    if "SSL" in settings.security_protocol.split("_"):
        options["ssl_context"] = create_ssl_context(
            cafile=settings.tls_ca or None,
            certfile=settings.tls_cert or None,
            keyfile=settings.tls_key or None,
            password=settings.tls_key_password or None,
        )
    if settings.security_protocol.startswith("SASL"):
        options["sasl_mechanism"] = settings.sasl_mechanism
        options["sasl_plain_username"] = settings.sasl_username
        options["sasl_plain_password"] = settings.sasl_password
    return options


def refused(what: object, operation: str, settings: Settings) -> NotAuthorized:
    """Return the exception for an operation that the broker refused."""
    return NotAuthorized(
        f"the broker does not allow the user {settings.sasl_username!r} to {operation}: {what}; "
        "deploy/docs/operations/broker-rights.md lists the rights that each service needs"
    )


async def bootstrapped(client: Any, settings: Settings) -> None:
    """Start a client. Raises BrokerUnreachable with the reason, or NotAuthorized; the client is then closed."""
    try:
        await client.start()
    except asyncio.CancelledError:
        await disconnect(client, _CANCEL_SECONDS)
        raise
    except (KafkaConnectionError, *REFUSED) as error:
        # Without this, aiokafka leaves half-open connections to the garbage collector.
        await disconnect(client, settings.stop_seconds)
        if isinstance(error, ClusterAuthorizationFailedError):
            # The broker names no topic if the user has no write right at all.
            raise refused(error, "write to any topic", settings) from error
        if isinstance(error, REFUSED):
            raise refused(error, "join its group", settings) from error
        raise BrokerUnreachable(
            f"cannot use the broker at {settings.broker} ({settings.security_protocol}): {await _why(settings)}"
        ) from error


async def disconnect(client: Any, seconds: float) -> bool:
    """Stop a client; return whether it disconnected in order within `seconds`. Raises only if the caller is cancelled.

    Without a broker, aiokafka waits up to its request timeout for each last request, and repeats some of them forever.
    A client that is late is cancelled, and its remaining tasks are left to the end of the event loop.
    """
    stop = getattr(client, "stop", None) or client.close
    task = asyncio.create_task(stop())
    await asyncio.wait([task], timeout=seconds)
    if task.done():
        # aiokafka also raises CancelledError here, from a fetch that it cancelled itself. Passed on, that would end the
        # shutdown of the caller half-way.
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("the Kafka client did not disconnect in order: %r", error)
        return True
    task.cancel()
    await asyncio.wait([task], timeout=_CANCEL_SECONDS)
    # Retrieved, or asyncio would log an error of a task that nobody waits for.
    task.add_done_callback(lambda late: late.cancelled() or late.exception())
    return False


async def _why(settings: Settings) -> str:
    """Return the reason of a failed connection, by another attempt: aiokafka does not report it."""
    options = connection(settings)
    host, _, port = options.pop("bootstrap_servers")[0].rpartition(":")
    del options["metadata_max_age_ms"]
    try:
        # A longer timeout would give no other reason.
        opened = await create_conn(host, int(port), **{**options, "request_timeout_ms": ADMIN_MS})
    except (AuthenticationFailedError, SaslAuthenticationFailed) as error:
        return (
            f"it refused the user {settings.sasl_username!r} ({settings.sasl_mechanism}): {error}; check the password"
        )
    except ssl.SSLCertVerificationError as error:
        return f"its certificate is not trusted: {error.verify_message}; check NEARDUP_TLS_CA"
    except ConnectionRefusedError:
        return "no program listens there; check NEARDUP_BROKER"
    except (KafkaError, OSError, TimeoutError, ValueError) as error:
        return f"{error!r}; check NEARDUP_BROKER and NEARDUP_SECURITY_PROTOCOL"
    opened.close()
    return "it sent no list of brokers; check NEARDUP_SECURITY_PROTOCOL"
