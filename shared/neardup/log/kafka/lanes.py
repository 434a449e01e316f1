"""Lanes: what goes to one partition of Kafka, from all who send at once, in as few requests as possible.

A Kafka client has one request at a time under way for a partition. Were every sender to pack a batch of its own, twenty
stages that answer the same owner would wait for twenty requests, one after the other. So outputs gather in a lane
while its last request is under way, and leave together with the next.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from neardup.log.contract import Output

_GATHER_SECONDS: Final = 0.004
"""A lane that was idle waits this long for company."""


class Lane:
    """One partition. `producer` is an aiokafka producer: only `create_batch` and `send_batch` are used."""

    def __init__(self, producer: Any, topic: str, partition: int) -> None:
        self._producer = producer
        self._topic = topic
        self._partition = partition
        self._waiting: deque[tuple[Output, asyncio.Future[None] | None]] = deque()
        self._task: asyncio.Task[None] | None = None

    def send(self, outputs: Sequence[Output]) -> asyncio.Future[None]:
        """Done when all are acknowledged, in this order; has the exception that the client raised for any of them."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.extend((output, None) for output in outputs[:-1])
        # Those before it are in the same batch or in an earlier one.
        self._waiting.append((outputs[-1], done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain(), name=f"lane {self._topic}-{self._partition}")
        return done

    async def _drain(self) -> None:
        await asyncio.sleep(_GATHER_SECONDS)
        while self._waiting:
            batch, done = self._next_batch()
            try:
                acknowledged = await self._producer.send_batch(batch, self._topic, partition=self._partition)
                await acknowledged
            except Exception as error:
                # What stands behind a lost batch must not overtake it when its senders try again.
                _fail([*done, *(future for _, future in self._waiting if future is not None)], error)
                self._waiting.clear()
                return
            for future in done:
                if not future.done():  # its sender may have given up
                    future.set_result(None)

    def _next_batch(self) -> tuple[Any, list[asyncio.Future[None]]]:
        batch = self._producer.create_batch()
        done: list[asyncio.Future[None]] = []
        empty = True
        while self._waiting:
            output, future = self._waiting[0]
            headers = list(output.headers)
            if batch.append(timestamp=None, key=output.key, value=output.value, headers=headers) is None and not empty:
                break
            # A batch takes its first record whatever its size; the broker says if it is too large.
            self._waiting.popleft()
            empty = False
            if future is not None:
                done.append(future)
        return batch, done


def _fail(futures: Sequence[asyncio.Future[None]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
