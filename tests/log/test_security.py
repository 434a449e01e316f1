"""A broker that asks for TLS and a password, and clients that have them or do not."""

import logging
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

import broker as kafka
from neardup.errors import BrokerUnreachable
from neardup.log import Output, TopicSpec
from neardup.log.kafka import KafkaLog
from neardup.settings import Settings
from tests.brokers import VERSION
from tests.log.test_contract import Recorder, join, read

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.real_broker,
    pytest.mark.skipif(not kafka.available(), reason="needs Java and Maven, to start a broker of its own"),
]

STORE_PASSWORD = "store-password"
SCRAM = "listener.name.client.scram-sha-512.sasl.jaas.config"


@dataclass
class Guarded:
    settings: Settings
    cluster: kafka.Cluster

    def refusals(self) -> int:
        return self.cluster.nodes[0].log.read_text().count("Failed authentication")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A node that talks only TLS, and only to users it knows."""
    directory = tmp_path_factory.mktemp("guarded")
    store, certificate = directory / "broker.p12", directory / "broker.pem"
    shared = ["-keystore", str(store), "-storepass", STORE_PASSWORD, "-alias", "broker"]
    made = ["-keyalg", "EC", "-dname", "CN=broker", "-ext", "SAN=IP:127.0.0.1", "-storetype", "PKCS12"]
    for command in (["-genkeypair", *shared, *made], ["-exportcert", "-rfc", "-file", str(certificate), *shared]):
        subprocess.run(["keytool", *command], check=True, capture_output=True)
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    properties = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        SCRAM: f'{login} username="broker" password="broker-password";',
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.truststore.location": str(store),
        "ssl.truststore.password": STORE_PASSWORD,
        "ssl.keystore.type": "PKCS12",
        "ssl.truststore.type": "PKCS12",
        # Every refusal in the broker's log; a client is answered at once.
        "connection.failed.authentication.delay.ms": "0",
    }
    users = {"broker": "broker-password", "crawler": "crawler-password"}
    with kafka.Cluster(
        directory / "data", version=VERSION, protocol="SASL_SSL", scram_users=users, properties=properties
    ) as cluster:
        settings = Settings(
            broker=cluster.bootstrap,
            security_protocol="SASL_SSL",
            sasl_username="crawler",
            sasl_password="crawler-password",
            tls_ca=str(certificate),
        )
        yield Guarded(settings, cluster)


async def test_with_the_certificate_and_the_password_records_go_through(guarded: Guarded) -> None:
    async with KafkaLog(guarded.settings) as log:
        assert await log.create_topics([TopicSpec("guarded", 1)]) == {"guarded": "created"}
        await log.send([Output("guarded", 0, None, b"secret")])
        consumer, recorder = await join(log, "guarded", "readers", Recorder())
        [record] = await read(consumer, recorder, 1)
        await consumer.close()
    assert record.value == b"secret"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sasl_password": "mistaken"}, r"it refused the user 'crawler' \(SCRAM-SHA-512\): .*check the password"),
        ({"sasl_username": "nobody"}, r"it refused the user 'nobody' \(SCRAM-SHA-512\)"),
        ({"tls_ca": ""}, "its certificate is not trusted: .*; check NEARDUP_TLS_CA"),
        ({"security_protocol": "PLAINTEXT"}, "check NEARDUP_BROKER and NEARDUP_SECURITY_PROTOCOL"),
        ({"security_protocol": "SSL"}, "check .*NEARDUP_SECURITY_PROTOCOL"),
    ],
)
async def test_without_them_the_error_says_what_is_wrong_and_nothing_is_tried_for_long(
    guarded: Guarded, changes: dict[str, str], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    settings = replace(guarded.settings, **changes)  # type: ignore[arg-type]
    before, started = guarded.refusals(), time.monotonic()
    with pytest.raises(BrokerUnreachable, match=said) as raised:
        await KafkaLog(settings).start()
    assert time.monotonic() - started < 20
    assert guarded.refusals() - before <= 2
    assert settings.sasl_password not in f"{raised.value}{caplog.text}"
