"""A member of a consumer group, on aiokafka.

The client has no reset policy, so an offset that retention removed is an error instead of a silent jump. aiokafka logs
and drops exceptions of a listener, so they are stored and raised by the next `poll`.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import aiokafka
from aiokafka.errors import IllegalStateError, KafkaError, OffsetOutOfRangeError

from neardup.errors import LogError, LogGap
from neardup.log.contract import Consumer, Listener, Partition, Record
from neardup.log.kafka.connecting import REFUSED, disconnect, refused
from neardup.settings import Settings

_LEAVE_SECONDS: Final = 3.0
"""Maximum wait for leaving the group, which has to wait for a join that is under way."""
_FAILED: Final = (KafkaError, IllegalStateError, RuntimeError)
"""Errors of a request. uvloop raises RuntimeError if the broker closed the connection a moment ago."""

logger = logging.getLogger(__name__)


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
            # Without partitions aiokafka would read all of them.
            await asyncio.sleep(timeout)
            return {}
        wanted = [aiokafka.TopicPartition(*partition) for partition in partitions]
        try:
            found = await self._client.getmany(*wanted, timeout_ms=int(timeout * 1000), max_records=max_records)
        except OffsetOutOfRangeError as error:
            raise await self._gap(error) from error
        except REFUSED as error:
            raise refused(error, "read", self._settings) from error
        except _FAILED as error:
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
        except _FAILED as error:
            raise LogError(f"the broker rejected the commit: {error!r}") from error

    async def committed(self, partition: Partition) -> int | None:
        offset: int | None = await self._client.committed(aiokafka.TopicPartition(*partition))
        return offset

    async def bounds(self, partitions: Collection[Partition]) -> Mapping[Partition, tuple[int, int]]:
        keys = [aiokafka.TopicPartition(*partition) for partition in partitions]
        try:
            first = await self._client.beginning_offsets(keys)
            last = await self._client.end_offsets(keys)
        except _FAILED as error:
            raise LogError(f"cannot query the broker for offsets: {error!r}") from error
        return {Partition(*key): (first[key], last[key]) for key in keys}

    async def close(self) -> None:
        await self.relay.close(self._client.assignment, self._settings.stop_seconds)
        self._closed = True
        if not await disconnect(self._client, _LEAVE_SECONDS):
            logger.warning(
                "no answer to leaving the group within %g s; the broker removes this member after its session timeout "
                "of %g s",
                _LEAVE_SECONDS,
                self._settings.session_timeout_seconds,
            )

    def hold(self, partitions: Collection[Partition]) -> None:
        """Pause fetching of these partitions."""
        self._seeked.clear()
        keys = [aiokafka.TopicPartition(*partition) for partition in partitions]
        self._client.pause(*keys)
        for key in keys:
            self._client.seek(key, 0)

    async def release(self, partitions: Collection[Partition]) -> None:
        """Fetch from the offset of the listener's seek, else from the committed offset, else from the oldest one."""
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
            f"{bounds[partition][1]}. Records were removed by retention or the topic was created again: "
            "restart the worker, which reports what can be done"
            for partition, offset in wrong.items()
        ))  # fmt: skip

    def _raise_relayed(self) -> None:
        if self.relay.error is not None:
            raise self.relay.error


class _Relay(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    """Forwards the calls of aiokafka to our listener and stores its exceptions for the next poll."""

    def __init__(self, consumer: KafkaConsumer, listener: Listener) -> None:
        self.error: Exception | None = None
        self._consumer = consumer
        self._listener = listener
        self._is_assigned = False
        self._closed = False
        self._calling = asyncio.Lock()
        """Held while the listener runs."""

    async def close(self, assignment: Callable[[], Collection[Any]], seconds: float) -> None:
        """Revoke the assigned partitions, and pass on no later rebalance.

        A rebalance that is under way is awaited for at most `seconds`: without a broker it may never end.
        """
        self._closed = True
        try:
            async with asyncio.timeout(seconds):
                await self._calling.acquire()
        except TimeoutError:
            return
        try:
            if assigned := assignment():
                await self._revoke(assigned)
        finally:
            self._calling.release()

    async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        mine = sorted(Partition(*key) for key in assigned)
        # This must come before the first await: without a position aiokafka would query for one and fail.
        self._consumer.hold(mine)
        async with self._calling:
            if self._closed:
                return
            try:
                self._is_assigned = True
                await self._listener.assigned(self._consumer, mine)
                await self._consumer.release(mine)
            except Exception as error:
                logger.debug("assignment failed", exc_info=True)
                self.error = error

    async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        async with self._calling:
            await self._revoke(revoked)

    async def _revoke(self, revoked: Collection[Any]) -> None:
        # aiokafka also revokes an empty assignment before the first join, and `close` may race with a rebalance.
        if not self._is_assigned:
            return
        self._is_assigned = False
        try:
            await self._listener.revoked(self._consumer, sorted(Partition(*key) for key in revoked))
        except Exception as error:
            logger.debug("revocation failed", exc_info=True)
            self.error = error
