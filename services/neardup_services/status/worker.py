"""The status of a worker, read from its HTTP endpoints: its readiness, and its metrics at two moments."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from neardup.errors import InputError

TIMEOUT_SECONDS: Final = 3.0
APART_SECONDS: Final = 1.0
Samples = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    """A worker. `reason` explains why it is not ready, or why the query failed."""

    url: str
    stage: str = ""
    ready: bool = False
    reason: str | None = None
    partitions: int = 0
    records_per_second: float = 0.0
    lag: int = 0
    checkpoint_age_seconds: float | None = None
    memory_bytes: int = 0
    slice_keys: int = 0
    slice_bytes: int = 0
    documents: int = 0


def query_workers(urls: Sequence[str]) -> list[WorkerView]:
    """Query all workers at once. Takes between one and four seconds.

    A worker that does not answer has a `reason`. Raises InputError if an address is not http or https.
    """
    for url in urls:
        if not url.startswith(("http://", "https://")):
            raise InputError(f"expected the address of a worker, such as http://127.0.0.1:6066, got {url!r}")
    with ThreadPoolExecutor(len(urls) or 1) as threads:
        return list(threads.map(_query, urls))


def _query(url: str) -> WorkerView:
    base = url.rstrip("/")
    try:
        before, stage = _scrape(base)
        time.sleep(APART_SECONDS)
        after, stage = _scrape(base)
        ready = json.loads(_get(f"{base}/readyz"))
    except (OSError, HTTPException, ValueError) as error:
        return WorkerView(url=url, reason=f"no answer: {error}")
    saved = after.get("oldest_checkpoint")
    return WorkerView(
        url=url,
        stage=stage,
        ready=ready["ready"],
        reason=ready["reason"],
        partitions=len(ready["partitions"]),
        records_per_second=round((after["neardup_records_total"] - before["neardup_records_total"]) / APART_SECONDS, 1),
        lag=int(after["neardup_lag_records"]),
        checkpoint_age_seconds=None if saved is None else round(time.time() - saved, 1),
        memory_bytes=int(after["process_resident_memory_bytes"]),
        slice_keys=int(after["neardup_slice_keys"]),
        slice_bytes=int(after["neardup_slice_bytes"]),
        documents=int(after["neardup_directory_documents"]),
    )


def _scrape(base: str) -> tuple[Samples, str]:
    """Return the values of the metrics, summed over all labels, the time of the oldest checkpoint, and the stage."""
    names = ("neardup_records_total", "neardup_lag_records", "process_resident_memory_bytes", "neardup_slice_keys",
             "neardup_slice_bytes", "neardup_directory_documents")  # fmt: skip
    samples: Samples = dict.fromkeys(names, 0.0)
    stage = ""
    for family in text_string_to_metric_families(_get(f"{base}/metrics")):
        for sample in family.samples:
            if sample.name in samples:
                samples[sample.name] += sample.value
            if sample.name == "neardup_assigned_partitions":
                stage = sample.labels["stage"]
            if sample.name == "neardup_checkpoint_timestamp_seconds":
                samples["oldest_checkpoint"] = min(samples.get("oldest_checkpoint", sample.value), sample.value)
    return samples, stage


def _get(url: str) -> str:
    try:
        # The address was checked to be http or https.
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 # nosec B310
            body: bytes = answer.read()
    except urllib.error.HTTPError as error:
        # A worker that is not ready reports its reason with status 503.
        with error:
            body = error.read()
    return body.decode()
