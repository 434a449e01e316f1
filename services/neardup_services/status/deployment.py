"""The status of a deployment on Kafka: its topics, its services and their lag."""

from dataclasses import dataclass
from typing import Final

from neardup.deployment.deployment import SERVICES, Deployment, group_of
from neardup.deployment.topics import topic_specs
from neardup.log.cluster import ClusterView
from neardup.log.kafka import look as read_cluster
from neardup.settings import Settings

MISSING: Final = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatus:
    """A topic. `state` is "exists", "missing", or the expected number of partitions if it differs."""

    topic: str
    state: str
    partitions: int
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStatus:
    """A worker in the consumer group of its service. `instance` is the fixed name of a static member."""

    client: str
    host: str
    partitions: int
    instance: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """A service. The lag is the number of records after the committed offset, in total and by partition."""

    service: str
    reads: str
    state: str
    members: list[MemberStatus]
    lag: int
    lag_by_partition: dict[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentStatus:
    """A snapshot of a deployment."""

    plan: str
    signature_version: str
    topics: list[TopicStatus]
    services: list[ServiceStatus]

    @property
    def is_complete(self) -> bool:
        """True if every topic exists and every service that is needed has a worker."""
        return all(each.state != MISSING for each in self.topics) and all(
            each.members for each in self.services if SERVICES[each.service].is_needed
        )


async def read_deployment(settings: Settings) -> DeploymentStatus:
    """Query the broker about a deployment. Raises LogError."""
    deployment = Deployment(settings)
    groups = {name: group_of(name, settings) for name in SERVICES}
    partitions = {spec.name: spec.partitions for spec in topic_specs(settings)}
    cluster = await read_cluster(settings, list(partitions), list(groups.values()))
    return DeploymentStatus(
        plan=deployment.plan.digest,
        signature_version=deployment.plan.signature_version,
        topics=[_topic(cluster, name, expected) for name, expected in partitions.items()],
        services=[
            _service(cluster, name, spec.topic(deployment.topics), groups[name], settings.prefix)
            for name, spec in SERVICES.items()
        ],
    )


def _topic(cluster: ClusterView, name: str, partitions: int) -> TopicStatus:
    found = cluster.topics.get(name)
    if found is None:
        return TopicStatus(topic=name, state=MISSING, partitions=0, records=0)
    agrees = len(found.bounds) == partitions
    state = "exists" if agrees else f"expected {partitions} partitions"
    return TopicStatus(topic=name, state=state, partitions=len(found.bounds), records=found.records)


def _service(cluster: ClusterView, name: str, topic: str, group: str, prefix: str) -> ServiceStatus:
    found, read = cluster.groups[group], cluster.topics.get(topic)
    lag = {} if read is None else {each.partition: count for each, count in found.lag(read).items()}
    members = [
        MemberStatus(
            client=each.client, host=each.host, partitions=each.partitions, instance=_instance(each.client, prefix)
        )
        for each in found.members
    ]
    return ServiceStatus(
        service=name, reads=topic, state=found.state, members=members, lag=sum(lag.values()), lag_by_partition=lag
    )


def _instance(client: str, prefix: str) -> str | None:
    return client.removeprefix(f"{prefix}-") if client.startswith(f"{prefix}-") else None
