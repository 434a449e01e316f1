"""Access to whole partitions of a Kafka cluster without a group membership, for `neardup reshard`.

Services never use this, because only members of a group share partitions.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, Self

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, UnknownTopicOrPartitionError, for_code

from neardup.errors import LogError
from neardup.log.contract import Partition, Record
from neardup.log.kafka.connecting import connection
from neardup.settings import Settings

_POLL_MS: Final = 500
_RECORDS: Final = 2000
_FETCH_BYTES: Final = 8 * 2**20
_GONE_SECONDS: Final = 60.0
_RETRY_SECONDS: Final = 0.2


class KafkaPartitions:
    """A client for whole partitions, used with `async with` from one task. Raises LogError if the broker refuses."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._reader: Any = aiokafka.AIOKafkaConsumer(
            **connection(settings), enable_auto_commit=False, auto_offset_reset="none",
            max_partition_fetch_bytes=_FETCH_BYTES,
        )  # fmt: skip

    async def __aenter__(self) -> Self:
        await self._reader.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._reader.stop()

    async def read(self, partition: Partition, start: int, end: int) -> AsyncIterator[Sequence[Record]]:
        """Yield the records from `start` up to, but not including, `end`. Waits without a timeout."""
        key = aiokafka.TopicPartition(*partition)
        self._reader.assign([key])
        self._reader.seek(key, start)
        try:
            while start < end:
                found = await self._reader.getmany(key, timeout_ms=_POLL_MS, max_records=_RECORDS)
                records = [record for record in found.get(key, ()) if record.offset < end]
                if records:
                    yield records
                start = await self._reader.position(key)
        except KafkaError as error:
            raise LogError(f"cannot read {partition}: {error!r}") from error

    async def set_offsets(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Set the offsets at which a group without members resumes."""
        member = aiokafka.AIOKafkaConsumer(**connection(self._settings), group_id=group, enable_auto_commit=False)
        keys = {aiokafka.TopicPartition(*partition): offset for partition, offset in offsets.items()}
        try:
            await member.start()
            member.assign(list(keys))
            await member.commit(keys)
        except KafkaError as error:
            raise LogError(f"cannot set the offsets of group {group}: {error!r}; does it have members?") from error
        finally:
            await member.stop()

    async def delete_topics(self, names: Sequence[str]) -> None:
        """Delete the topics that exist, and wait until the deletion is complete."""
        admin = AIOKafkaAdminClient(**connection(self._settings))
        await admin.start()
        try:
            response = await admin.delete_topics(list(names))
            for name, code in response.topic_error_codes:
                if code and for_code(code) is not UnknownTopicOrPartitionError:
                    raise LogError(f"cannot delete {name}: {for_code(code).__name__}")
            deadline = time.monotonic() + _GONE_SECONDS
            while any(not each["error_code"] for each in await admin.describe_topics(list(names))):
                if time.monotonic() > deadline:
                    raise LogError(f"expected {', '.join(names)} to be deleted after {_GONE_SECONDS:g} s; try again")
                await asyncio.sleep(_RETRY_SECONDS)
        except KafkaError as error:
            raise LogError(f"cannot delete {', '.join(names)}: {error!r}") from error
        finally:
            await admin.close()
