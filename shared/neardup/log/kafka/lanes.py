"""Lanes: outputs of all senders to one Kafka partition, sent in as few requests as possible.

A Kafka client has at most one request in flight per partition. If every sender packed its own batch, twenty stages that
answer the same owner would wait for twenty requests in sequence. Therefore a lane collects outputs while a request is
in flight, and sends them together with the next one.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from neardup.log.contract import Output

_GATHER_SECONDS: Final = 0.004
"""Time in seconds for which an idle lane waits for outputs of other senders."""


class Lane:
    """The queue of one partition. Of the aiokafka producer it uses only `create_batch` and `send_batch`."""

    def __init__(self, producer: Any, topic: str, partition: int) -> None:
        self._producer = producer
        self._topic = topic
        self._partition = partition
        self._waiting: deque[tuple[Output, asyncio.Future[None] | None]] = deque()
        self._task: asyncio.Task[None] | None = None

    def send(self, outputs: Sequence[Output]) -> asyncio.Future[None]:
        """Return a future that ends when all outputs are acknowledged, in order, or with the first exception."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.extend((output, None) for output in outputs[:-1])
        # The other outputs are in the same batch or in an earlier one.
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
                # Outputs behind a failed batch must not overtake it when its senders retry.
                _fail([*done, *(future for _, future in self._waiting if future is not None)], error)
                self._waiting.clear()
                return
            for future in done:
                if not future.done():  # the sender may have cancelled it
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
            # A batch accepts its first record whatever its size; the broker rejects it if it is too large.
            self._waiting.popleft()
            empty = False
            if future is not None:
                done.append(future)
        return batch, done


def _fail(futures: Sequence[asyncio.Future[None]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
