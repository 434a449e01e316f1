"""A broker that accepts only TLS connections of known users, and enforces access control lists."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from deploy.kafka import broker as kafka
from neardup.settings import Settings
from tests.support.brokers import own_cluster

SCRAM = "listener.name.client.scram-sha-512.sasl.jaas.config"
ADMIN = "admin"
USERS = ("broker", ADMIN, "featurizer", "shard", "aggregator", "recluster", "canary", "crawler", "deployer", "viewer")


@dataclass
class Guarded:
    """A running broker. `settings` belong to a user with all rights."""

    settings: Settings
    cluster: kafka.Cluster

    def refusals(self) -> int:
        return self.cluster.logged(self.cluster.nodes[0]).count("Failed authentication")

    def settings_of(self, user: str, **changes: object) -> Settings:
        return replace(self.settings, sasl_username=user, sasl_password=f"{user}-password", **changes)  # type: ignore[arg-type]


@contextmanager
def guarded_broker(directory: Path) -> Iterator[Guarded]:
    store, certificate = directory / "store.pem", directory / "broker.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(directory / "key.pem"), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    store.write_text((directory / "key.pem").read_text() + certificate.read_text())
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    properties = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        SCRAM: f'{login} username="broker" password="broker-password";',
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificate),
        # Log every refusal, and respond to a client without a delay.
        "connection.failed.authentication.delay.ms": "0",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # The node connects to itself as controller without authentication; clients cannot reach that port.
        "super.users": f"User:broker;User:{ADMIN};User:ANONYMOUS",
    }
    users = {name: f"{name}-password" for name in USERS}
    made = own_cluster(directory / "data", protocol="SASL_SSL", scram_users=users, properties=properties)
    with made as cluster:
        settings = Settings(
            broker=cluster.bootstrap,
            security_protocol="SASL_SSL",
            sasl_username=ADMIN,
            sasl_password=users[ADMIN],
            tls_ca=str(certificate),
        )
        yield Guarded(settings, cluster)
