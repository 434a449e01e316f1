"""Tests of connections to a broker that requires TLS and a password, with and without valid credentials."""

import logging
import time
from dataclasses import replace

import pytest

from neardup.errors import BrokerUnreachable
from neardup.log import Output, TopicSpec
from neardup.log.kafka import KafkaLog
from tests.log.guarded import Guarded
from tests.log.test_contract import Recorder, join, read

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.real_broker,
]


async def test_records_are_delivered_with_a_certificate_and_password(guarded: Guarded) -> None:
    async with KafkaLog(guarded.settings) as log:
        assert await log.create_topics([TopicSpec("guarded", 1)]) == {"guarded": "created"}
        await log.send([Output("guarded", 0, None, b"secret")])
        consumer, recorder = await join(log, "guarded", "readers", Recorder())
        [record] = await read(consumer, recorder, 1)
        await consumer.close()
    assert record.value == b"secret"


@pytest.mark.parametrize(
    ("changes", "expected", "logged"),
    [
        ({"sasl_password": "mistaken"}, r"it refused the user 'admin' \(SCRAM-SHA-512\): .*check the password", True),
        ({"sasl_username": "nobody"}, r"it refused the user 'nobody' \(SCRAM-SHA-512\)", True),
        ({"tls_ca": ""}, "its certificate is not trusted: .*; check NEARDUP_TLS_CA", False),
        ({"security_protocol": "PLAINTEXT"}, "check NEARDUP_BROKER and NEARDUP_SECURITY_PROTOCOL", True),
        ({"security_protocol": "SSL"}, "check .*NEARDUP_SECURITY_PROTOCOL", False),
    ],
)
async def test_invalid_credentials_are_a_clear_error_without_long_retries(
    guarded: Guarded, changes: dict[str, str], expected: str, logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    settings = replace(guarded.settings, **changes)  # type: ignore[arg-type]
    before, started = guarded.refusals(), time.monotonic()
    with pytest.raises(BrokerUnreachable, match=expected) as raised:
        await KafkaLog(settings).start()
    assert time.monotonic() - started < 20
    assert int(logged) <= guarded.refusals() - before <= 2
    assert settings.sasl_password not in f"{raised.value}{caplog.text}"
