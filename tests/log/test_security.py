"""A broker that asks for TLS and a password, and clients that have them or do not."""

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


async def test_with_the_certificate_and_the_password_records_go_through(guarded: Guarded) -> None:
    async with KafkaLog(guarded.settings) as log:
        assert await log.create_topics([TopicSpec("guarded", 1)]) == {"guarded": "created"}
        await log.send([Output("guarded", 0, None, b"secret")])
        consumer, recorder = await join(log, "guarded", "readers", Recorder())
        [record] = await read(consumer, recorder, 1)
        await consumer.close()
    assert record.value == b"secret"


@pytest.mark.parametrize(
    ("changes", "said", "logged"),
    [
        ({"sasl_password": "mistaken"}, r"it refused the user 'admin' \(SCRAM-SHA-512\): .*check the password", True),
        ({"sasl_username": "nobody"}, r"it refused the user 'nobody' \(SCRAM-SHA-512\)", True),
        ({"tls_ca": ""}, "its certificate is not trusted: .*; check NEARDUP_TLS_CA", False),
        ({"security_protocol": "PLAINTEXT"}, "check NEARDUP_BROKER and NEARDUP_SECURITY_PROTOCOL", True),
        ({"security_protocol": "SSL"}, "check .*NEARDUP_SECURITY_PROTOCOL", False),
    ],
)
async def test_without_them_the_error_says_what_is_wrong_and_nothing_is_tried_for_long(
    guarded: Guarded, changes: dict[str, str], said: str, logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    settings = replace(guarded.settings, **changes)  # type: ignore[arg-type]
    before, started = guarded.refusals(), time.monotonic()
    with pytest.raises(BrokerUnreachable, match=said) as raised:
        await KafkaLog(settings).start()
    assert time.monotonic() - started < 20
    assert int(logged) <= guarded.refusals() - before <= 2
    assert settings.sasl_password not in f"{raised.value}{caplog.text}"
