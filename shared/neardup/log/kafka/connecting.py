"""Reaching a broker: what every client needs for it, and why it could not."""

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
"""How long a question about the cluster waits for its answer."""
REFUSED: Final = (TopicAuthorizationFailedError, GroupAuthorizationFailedError, ClusterAuthorizationFailedError)
"""What aiokafka raises for a right that is missing."""
_METADATA_MS: Final = 30_000


def connection(settings: Settings) -> dict[str, Any]:
    """What every aiokafka client needs to reach the broker."""
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


def refused(what: object, wish: str, settings: Settings) -> NotAuthorized:
    """What to raise when the broker does not allow what was wished."""
    return NotAuthorized(
        f"the broker does not let the user {settings.sasl_username!r} {wish}: {what}; "
        "deploy/docs/operations/broker-rights.md lists the rights that each service needs"
    )


async def bootstrapped(client: Any, settings: Settings) -> None:
    """Start a client. Raises BrokerUnreachable, which says why, and NotAuthorized; the client is then closed."""
    try:
        await client.start()
    except (KafkaConnectionError, *REFUSED) as error:
        # aiokafka leaves its half-open connections to the garbage collector.
        close = getattr(client, "stop", None) or client.close
        await close()
        if isinstance(error, ClusterAuthorizationFailedError):
            # What a broker says to a producer that has no right to write anywhere, in place of naming a topic.
            raise refused(error, "write to any topic", settings) from error
        if isinstance(error, REFUSED):
            raise refused(error, "join its group", settings) from error
        raise BrokerUnreachable(
            f"cannot use the broker at {settings.broker} ({settings.security_protocol}): {await _why(settings)}"
        ) from error


async def _why(settings: Settings) -> str:
    """aiokafka does not say why it has no connection: one more try at the first address does."""
    options = connection(settings)
    host, _, port = options.pop("bootstrap_servers")[0].rpartition(":")
    del options["metadata_max_age_ms"]
    try:
        # Waiting longer would not tell more.
        opened = await create_conn(host, int(port), **{**options, "request_timeout_ms": ADMIN_MS})
    except (AuthenticationFailedError, SaslAuthenticationFailed) as error:
        return (
            f"it refused the user {settings.sasl_username!r} ({settings.sasl_mechanism}): {error}; check the password"
        )
    except ssl.SSLCertVerificationError as error:
        return f"its certificate is not trusted: {error.verify_message}; check NEARDUP_TLS_CA"
    except ConnectionRefusedError:
        return "nobody listens there; check NEARDUP_BROKER"
    except (KafkaError, OSError, TimeoutError, ValueError) as error:
        return f"{error!r}; check NEARDUP_BROKER and NEARDUP_SECURITY_PROTOCOL"
    opened.close()
    return "it did not say which brokers there are; check NEARDUP_SECURITY_PROTOCOL"
