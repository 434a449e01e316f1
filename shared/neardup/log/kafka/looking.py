"""Queries for the current state of topics and groups."""

from collections.abc import Sequence
from typing import Any

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    KafkaError,
    TopicAuthorizationFailedError,
)

from neardup.errors import LogError
from neardup.log.cluster import ClusterView, GroupView, MemberView, TopicView
from neardup.log.contract import Partition
from neardup.log.kafka.connecting import ADMIN_MS, bootstrapped, connection, refused
from neardup.settings import Settings


async def look(settings: Settings, topics: Sequence[str], groups: Sequence[str]) -> ClusterView:
    """Return the current state of topics and groups, without a change to the cluster or a group membership.

    Raises BrokerUnreachable, NotAuthorized and LogError.
    """
    options = {**connection(settings), "request_timeout_ms": ADMIN_MS}
    reader = aiokafka.AIOKafkaConsumer(**options, enable_auto_commit=False)
    admin = AIOKafkaAdminClient(**options)
    await bootstrapped(reader, settings)
    try:
        await bootstrapped(admin, settings)
        described = await admin.describe_topics(list(topics))
        for each in described:
            if each["error_code"] == TopicAuthorizationFailedError.errno:
                raise refused(each["topic"], "describe the topic", settings)
        counts = {each["topic"]: len(each["partitions"]) for each in described if not each["error_code"]}
        keys = [aiokafka.TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
        first, end = await reader.beginning_offsets(keys), await reader.end_offsets(keys)
        bounds = {Partition(*key): (first[key], end[key]) for key in keys}
        return ClusterView(
            {name: TopicView(name, {at: ends for at, ends in bounds.items() if at.topic == name}) for name in counts},
            {name: await _group(admin, name) for name in groups},
        )
    except GroupAuthorizationFailedError as error:
        raise refused(error, "describe the group", settings) from error
    except (KafkaError, TimeoutError) as error:
        raise LogError(f"the broker did not respond: {error!r}; check that it is up") from error
    finally:
        await admin.close()
        await reader.stop()


async def _group(admin: AIOKafkaAdminClient, name: str) -> GroupView:
    try:
        ((answer,),) = [response.groups for response in await admin.describe_consumer_groups([name])]
    except GroupCoordinatorNotAvailableError:
        # A cluster without any group has no coordinator yet.
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
