"""Tests of the Kafka log beyond the contract: security settings, static membership, offsets removed by retention."""

import asyncio
import ssl

import pytest
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.structs import TopicPartition

from neardup.errors import LogGap
from neardup.log import TopicSpec
from neardup.log.kafka import KafkaLog, connection
from neardup.settings import Settings
from tests.log.test_contract import Recorder, join, numbered, poll_until, read


def test_security_settings_reach_the_client() -> None:
    options = connection(
        Settings(broker="a:1, b:2", security_protocol="SASL_SSL", sasl_username="me", sasl_password="secret")
    )
    assert options["bootstrap_servers"] == ["a:1", "b:2"]
    assert options["security_protocol"] == "SASL_SSL"
    assert (options["sasl_mechanism"], options["sasl_plain_username"]) == ("SCRAM-SHA-512", "me")
    assert options["sasl_plain_password"] == "secret"
    assert isinstance(options["ssl_context"], ssl.SSLContext)
    assert options["ssl_context"].verify_mode is ssl.CERT_REQUIRED


def test_a_plaintext_connection_sends_no_credentials() -> None:
    options = connection(Settings(sasl_username="me", sasl_password="secret"))
    assert not {key for key in options if key.startswith(("sasl", "ssl"))}


@pytest.mark.kafka
@pytest.mark.real_broker
async def test_a_static_member_returns_to_its_partitions_without_a_rebalance(kafka_settings: Settings) -> None:
    topic = f"{kafka_settings.prefix}-static"
    async with KafkaLog(kafka_settings) as log:
        await log.create_topics([TopicSpec(topic, 4)])
        stays, leaves, returns = Recorder(), Recorder(), Recorder()
        staying = await log.consumer(topic, topic, stays, instance="one")
        leaving = await log.consumer(topic, topic, leaves, instance="two")
        await asyncio.gather(
            poll_until(staying, stays, lambda: len(stays.mine) == 2),
            poll_until(leaving, leaves, lambda: len(leaves.mine) == 2),
        )
        before, events = set(leaves.mine), len(stays.events)
        await leaving.close()
        returning = await log.consumer(topic, topic, returns, instance="two")
        await poll_until(returning, returns, lambda: len(returns.mine) == 2)
        assert returns.mine == before
        assert len(stays.events) == events
        await returning.close()
        await staying.close()


@pytest.mark.kafka
@pytest.mark.real_broker
async def test_an_offset_that_retention_removed_is_reported_as_a_gap(kafka_settings: Settings) -> None:
    topic = f"{kafka_settings.prefix}-short"
    async with KafkaLog(kafka_settings) as log:
        await log.create_topics([TopicSpec(topic, 1)])
        await log.send(numbered(topic, 0, 100))
        admin = AIOKafkaAdminClient(**connection(kafka_settings))
        await admin.start()
        await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=60)})
        await admin.close()
        recorder = Recorder(seeks={0: 10})
        consumer, _ = await join(log, topic, listener=recorder)
        with pytest.raises(LogGap, match=r"expected to read offset 10, the log holds 60 to 100"):
            await read(consumer, recorder, 1)
        await consumer.close()
        consumer, recorder = await join(log, topic, "others")
        records = await read(consumer, recorder, 40)
        assert [record.offset for record in records] == list(range(60, 100))
        await consumer.close()
