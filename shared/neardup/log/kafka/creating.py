"""Creation of topics, and comparison with existing ones."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from neardup.errors import LogError, TopicMismatch
from neardup.log.contract import TopicSpec
from neardup.log.kafka.connecting import ADMIN_MS, bootstrapped, connection
from neardup.settings import Settings

_RETRY_SECONDS: Final = 0.5


async def create_topics(specs: Sequence[TopicSpec], settings: Settings) -> dict[str, str]:
    """Implement `Log.create_topics`. Errors that may be temporary are retried until the request timeout."""
    deadline = time.monotonic() + settings.request_timeout_seconds
    while True:
        # A new client with a short timeout per attempt, because a client keeps to a dead controller until its timeout.
        admin = AIOKafkaAdminClient(**{**connection(settings), "request_timeout_ms": ADMIN_MS})
        await bootstrapped(admin, settings)
        try:
            return {spec.name: await _create(admin, spec) for spec in specs}
        except (KafkaError, TimeoutError) as error:
            if not getattr(error, "retriable", True) or time.monotonic() > deadline:
                raise LogError(f"the broker did not create the topics: {error!r}") from error
            await asyncio.sleep(_RETRY_SECONDS)
        finally:
            await admin.close()


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
        # The topic is so new that some brokers do not have it yet, or this user may not describe it.
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
