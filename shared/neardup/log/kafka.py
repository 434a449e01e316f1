"""The Kafka log, on aiokafka. The only module that knows Kafka.

Three choices carry the contract. Outputs are packed into record batches by hand, all that wait for a partition into one
(`lanes.py`), which is several times cheaper than a future per record. The consumer has no reset policy, so an offset
that retention removed is an error instead of a silent jump. Errors of a listener, which aiokafka logs and swallows, are
kept and raised by the next `poll`.
"""

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import aiokafka
import xxhash
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.conn import create_conn
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import (
    AuthenticationFailedError,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    IllegalStateError,
    KafkaConnectionError,
    KafkaError,
    OffsetOutOfRangeError,
    SaslAuthenticationFailed,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    for_code,
)
from aiokafka.helpers import create_ssl_context

from neardup.errors import BrokerUnreachable, LogError, LogGap, NotAuthorized, SendFailed, TopicMismatch
from neardup.log.cluster import ClusterView, GroupView, MemberView, TopicView
from neardup.log.contract import Consumer, Listener, Log, Output, Partition, Record, TopicSpec
from neardup.log.lanes import Lane
from neardup.settings import Settings

logger = logging.getLogger(__name__)

_BATCH_BYTES: Final = 2**20
_FETCH_BYTES: Final = 2 * 2**20
_FETCH_LEAST_BYTES: Final = 2**18
_FETCH_PATIENT_BYTES: Final = 2**20
_FETCH_WAIT_MS: Final = 20
_METADATA_MS: Final = 30_000
_ADMIN_MS: Final = 5_000
_RETRY_SECONDS: Final = 0.5
_KNOWN_SECONDS: Final = 5.0
_REFUSED: Final = (TopicAuthorizationFailedError, GroupAuthorizationFailedError, ClusterAuthorizationFailedError)


class KafkaLog(Log):
    """A Kafka cluster."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection = connection(settings)
        self._producer: Any = None
        self._counts: dict[str, int] = {}
        self._turn = 0
        self._lanes: dict[tuple[str, int], Lane] = {}

    async def start(self) -> None:
        compression = self._settings.compression
        self._producer = aiokafka.AIOKafkaProducer(
            **self._connection,
            enable_idempotence=True,
            acks="all",
            compression_type=None if compression == "none" else compression,
            max_batch_size=_BATCH_BYTES,
            max_request_size=self._settings.max_message_bytes + 2**20,
        )
        await _bootstrapped(self._producer, self._settings)

    async def stop(self) -> None:
        if self._producer is not None:
            # With the broker away it would wait for batches that nobody wants any more.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._producer.stop(), self._settings.stop_seconds)

    async def send(self, outputs: Sequence[Output]) -> None:
        by_partition: dict[tuple[str, int], list[Output]] = {}
        for output in outputs:
            number = output.partition
            if number is None:
                number = await self._by_key(output)
            by_partition.setdefault((output.topic, number), []).append(output)
        if not by_partition:
            return
        sent = [self._lane(topic, number).send(some) for (topic, number), some in by_partition.items()]
        try:
            done, _ = await asyncio.wait(sent, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for each in sent:
                each.cancel()  # does nothing to one that is done
        errors = [error for each in done if (error := each.exception()) is not None]
        if errors:
            if isinstance(errors[0], _REFUSED):
                raise _refused(errors[0], "write to a topic", self._settings) from errors[0]
            raise SendFailed(f"outputs were not acknowledged: {errors[0]!r}; is the broker up?") from errors[0]

    async def consumer(
        self, topic: str, group: str, listener: Listener, *, instance: str = "", patience: float = 0.0
    ) -> "KafkaConsumer":
        await self.partitions(topic)
        session = int(self._settings.session_timeout_seconds * 1000)
        client = aiokafka.AIOKafkaConsumer(
            **self._connection,
            group_id=group,
            group_instance_id=instance or None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            partition_assignment_strategy=(StickyPartitionAssignor,),
            session_timeout_ms=session,
            heartbeat_interval_ms=max(session // 5, 100),
            rebalance_timeout_ms=max(session, 60_000),
            max_partition_fetch_bytes=max(_FETCH_BYTES, self._settings.max_message_bytes),
            # Little by little costs broker and workers more than it gains: a fetch waits for some bytes, but not long,
            # also because a partition that was read while a fetch is under way is not in that fetch.
            fetch_min_bytes=_FETCH_PATIENT_BYTES if patience else _FETCH_LEAST_BYTES,
            fetch_max_wait_ms=max(_FETCH_WAIT_MS, int(patience * 1000)),
        )
        member = KafkaConsumer(client, listener, self._settings)
        client.subscribe([topic], listener=member.relay)
        await _bootstrapped(client, self._settings)
        return member

    async def partitions(self, topic: str) -> int:
        client = self._producer.client
        # A topic created a moment ago may not be known to every broker yet.
        deadline = time.monotonic() + _KNOWN_SECONDS
        while time.monotonic() < deadline:
            if known := client.cluster.partitions_for_topic(topic):
                return len(known)
            await client.add_topic(topic)
            await client.force_metadata_update()
            if topic in client.cluster.unauthorized_topics:
                raise _refused(topic, "see the topic", self._settings)
            await asyncio.sleep(_RETRY_SECONDS)
        raise TopicMismatch(f"topic {topic} does not exist; create it with: neardup topics create")

    async def create_topics(self, specs: Sequence[TopicSpec]) -> dict[str, str]:
        deadline = time.monotonic() + self._settings.request_timeout_seconds
        while True:
            # A client of its own each time, and a short wait: it asks a dead controller until its time is over.
            admin = AIOKafkaAdminClient(**{**self._connection, "request_timeout_ms": _ADMIN_MS})
            await _bootstrapped(admin, self._settings)
            try:
                return {spec.name: await _create(admin, spec) for spec in specs}
            except (KafkaError, TimeoutError) as error:
                if not getattr(error, "retriable", True) or time.monotonic() > deadline:
                    raise LogError(f"the broker did not create the topics: {error!r}") from error
                await asyncio.sleep(_RETRY_SECONDS)
            finally:
                await admin.close()

    async def _by_key(self, output: Output) -> int:
        count = self._counts.get(output.topic)
        if count is None:
            count = self._counts[output.topic] = await self.partitions(output.topic)
        if output.key is None:
            self._turn += 1
            return self._turn % count
        # Not the hash of Kafka's own clients, which in Python takes longer than all the rest of sending a record.
        return xxhash.xxh3_64_intdigest(output.key) % count

    def _lane(self, topic: str, number: int) -> Lane:
        lane = self._lanes.get((topic, number))
        if lane is None:
            lane = self._lanes[topic, number] = Lane(self._producer, topic, number)
        return lane


class KafkaConsumer(Consumer):
    """A member of a Kafka consumer group."""

    def __init__(self, client: Any, listener: Listener, settings: Settings) -> None:
        self.relay = _Relay(self, listener)
        self._client = client
        self._settings = settings
        self._seeked: set[Partition] = set()
        self._closed = False

    async def poll(
        self, partitions: Collection[Partition], *, timeout: float, max_records: int
    ) -> Mapping[Partition, Sequence[Record]]:
        self._raise_relayed()
        if not partitions:
            # aiokafka reads "none" as "all": wait in its place.
            await asyncio.sleep(timeout)
            return {}
        wanted = [aiokafka.TopicPartition(*partition) for partition in partitions]
        try:
            found = await self._client.getmany(*wanted, timeout_ms=int(timeout * 1000), max_records=max_records)
        except OffsetOutOfRangeError as error:
            raise await self._gap(error) from error
        except _REFUSED as error:
            raise _refused(error, "read", self._settings) from error
        except KafkaError as error:
            raise LogError(f"cannot read from the broker: {error!r}") from error
        self._raise_relayed()
        return {Partition(*partition): records for partition, records in found.items()}

    def seek(self, partition: Partition, offset: int) -> None:
        try:
            self._client.seek(aiokafka.TopicPartition(*partition), offset)
        except IllegalStateError as error:
            raise LogError(f"{partition} is not assigned to this member") from error
        self._seeked.add(partition)

    async def commit(self, offsets: Mapping[Partition, int]) -> None:
        if self._closed:
            raise LogError("this consumer has left its group")
        try:
            await self._client.commit({aiokafka.TopicPartition(*key): offset for key, offset in offsets.items()})
        except (KafkaError, IllegalStateError) as error:
            raise LogError(f"the broker did not take the commit: {error!r}") from error

    async def committed(self, partition: Partition) -> int | None:
        offset: int | None = await self._client.committed(aiokafka.TopicPartition(*partition))
        return offset

    async def bounds(self, partitions: Collection[Partition]) -> Mapping[Partition, tuple[int, int]]:
        keys = [aiokafka.TopicPartition(*partition) for partition in partitions]
        try:
            first = await self._client.beginning_offsets(keys)
            last = await self._client.end_offsets(keys)
        except KafkaError as error:
            raise LogError(f"cannot ask the broker for offsets: {error!r}") from error
        return {Partition(*key): (first[key], last[key]) for key in keys}

    async def close(self) -> None:
        assignment = self._client.assignment()
        if assignment:
            await self.relay.on_partitions_revoked(assignment)
        self._closed = True
        await self._client.stop()

    def hold(self, partitions: Collection[Partition]) -> None:
        """Fetch nothing of these yet."""
        self._seeked.clear()
        keys = [aiokafka.TopicPartition(*partition) for partition in partitions]
        self._client.pause(*keys)
        for key in keys:
            self._client.seek(key, 0)

    async def release(self, partitions: Collection[Partition]) -> None:
        """Fetch from where the listener seeked to, else from the committed offset, else from the oldest."""
        for partition in set(partitions) - self._seeked:
            offset = await self.committed(partition)
            if offset is None:
                offset, _ = (await self.bounds([partition]))[partition]
            self.seek(partition, offset)
        self._client.resume(*(aiokafka.TopicPartition(*partition) for partition in partitions))

    async def _gap(self, error: OffsetOutOfRangeError) -> LogError:
        wrong = {Partition(*key): offset for key, offset in error.args[0].items()}
        bounds = await self.bounds(list(wrong))
        return LogGap("; ".join(
            f"{partition}: expected to read offset {offset}, the log holds {bounds[partition][0]} to "
            f"{bounds[partition][1]}. Records were removed by retention or the topic was made anew: start "
            "the worker again, and it says what can be done"
            for partition, offset in wrong.items()
        ))  # fmt: skip

    def _raise_relayed(self) -> None:
        if self.relay.error is not None:
            raise self.relay.error


class _Relay(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    """Hands aiokafka's calls to our listener and keeps what it raised for the next poll."""

    def __init__(self, consumer: KafkaConsumer, listener: Listener) -> None:
        self.error: Exception | None = None
        self._consumer = consumer
        self._listener = listener
        self._told = False

    async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        mine = sorted(Partition(*key) for key in assigned)
        # Before anything is awaited: without a position aiokafka would look one up by itself and find none.
        self._consumer.hold(mine)
        try:
            self._told = True
            await self._listener.assigned(self._consumer, mine)
            await self._consumer.release(mine)
        except Exception as error:
            logger.debug("assignment failed", exc_info=True)
            self.error = error

    async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        # aiokafka also revokes an empty assignment before the first join, and `close` may race with a rebalance.
        if not self._told:
            return
        self._told = False
        try:
            await self._listener.revoked(self._consumer, sorted(Partition(*key) for key in revoked))
        except Exception as error:
            logger.debug("revocation failed", exc_info=True)
            self.error = error


async def look(settings: Settings, topics: Sequence[str], groups: Sequence[str]) -> ClusterView:
    """Topics and groups as they are now; changes nothing, joins nothing. Raises BrokerUnreachable and LogError."""
    options = {**connection(settings), "request_timeout_ms": _ADMIN_MS}
    reader = aiokafka.AIOKafkaConsumer(**options, enable_auto_commit=False)
    admin = AIOKafkaAdminClient(**options)
    await _bootstrapped(reader, settings)
    try:
        await _bootstrapped(admin, settings)
        described = await admin.describe_topics(list(topics))
        counts = {each["topic"]: len(each["partitions"]) for each in described if not each["error_code"]}
        keys = [aiokafka.TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
        first, end = await reader.beginning_offsets(keys), await reader.end_offsets(keys)
        bounds = {Partition(*key): (first[key], end[key]) for key in keys}
        return ClusterView(
            {name: TopicView(name, {at: ends for at, ends in bounds.items() if at.topic == name}) for name in counts},
            {name: await _group(admin, name) for name in groups},
        )
    except (KafkaError, TimeoutError) as error:
        raise LogError(f"the broker did not answer: {error!r}") from error
    finally:
        await admin.close()
        await reader.stop()


async def _group(admin: AIOKafkaAdminClient, name: str) -> GroupView:
    try:
        ((answer,),) = [response.groups for response in await admin.describe_consumer_groups([name])]
    except GroupCoordinatorNotAvailableError:
        # A cluster in which no group ever was has nobody to ask.
        return GroupView(name, "no coordinator")
    state, members = answer[2], answer[5]
    committed = await admin.list_consumer_group_offsets(name)
    return GroupView(
        name,
        str(state),
        tuple(sorted((_member(each) for each in members), key=lambda member: member.client)),
        {Partition(*key): at.offset for key, at in committed.items()},
    )


def _member(described: Sequence[Any]) -> MemberView:
    _, client, host, _, assignment = described[:5]
    assigned = ConsumerProtocolMemberAssignment.decode(assignment).assignment if assignment else []
    return MemberView(client, host.removeprefix("/"), sum(len(numbers) for _, numbers in assigned))


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


def _refused(what: object, wish: str, settings: Settings) -> NotAuthorized:
    return NotAuthorized(
        f"the broker does not let the user {settings.sasl_username!r} {wish}: {what}; deploy/SECURITY.md lists the "
        "rights that each service needs"
    )


async def _bootstrapped(client: Any, settings: Settings) -> None:
    try:
        await client.start()
    except (KafkaConnectionError, *_REFUSED) as error:
        # aiokafka leaves its half-open connections to the garbage collector.
        close = getattr(client, "stop", None) or client.close
        await close()
        if isinstance(error, _REFUSED):
            raise _refused(error, "join its group", settings) from error
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
        opened = await create_conn(host, int(port), **{**options, "request_timeout_ms": _ADMIN_MS})
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


async def _create(admin: AIOKafkaAdminClient, spec: TopicSpec) -> str:
    response = await admin.create_topics(
        [NewTopic(spec.name, spec.partitions, spec.replication, topic_configs=dict(spec.configs))]
    )
    code, message = response.topic_errors[0][1:3]
    if code == 0:
        return "created"
    if for_code(code) is not TopicAlreadyExistsError:
        raise TopicMismatch(f"cannot create {spec.name}: {for_code(code).__name__}: {message}")
    differences = await _differences(admin, spec)
    return "differs: " + ", ".join(differences) if differences else "exists"


async def _differences(admin: AIOKafkaAdminClient, spec: TopicSpec) -> list[str]:
    (topic,) = await admin.describe_topics([spec.name])
    if topic["error_code"]:
        # Made a moment ago and not known to every broker yet, or not to be seen by this user.
        raise for_code(topic["error_code"])(spec.name)
    found = []
    if len(topic["partitions"]) != spec.partitions:
        found.append(f"{len(topic['partitions'])} partitions, expected {spec.partitions}")
    copies = len(topic["partitions"][0]["replicas"])
    if copies != spec.replication:
        found.append(f"{copies} replicas, expected {spec.replication}")
    answer = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, spec.name)])
    actual = {entry[0]: entry[1] for entry in answer[0].resources[0][4]}
    for name, value in spec.configs.items():
        if actual.get(name) != value:
            found.append(f"{name} = {actual.get(name)}, expected {value}")
    return found
