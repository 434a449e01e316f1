"""All metrics of neardup, with their descriptions.

Names follow the Prometheus conventions: a unit, `_total` for counters. Labels are bounded: stages, topics,
partitions and fixed words, never a url.
"""

import contextlib

from prometheus_client import Counter, Gauge, Histogram

BUILD_INFO = Gauge(
    "neardup_build_info",
    "Always 1; the labels say what this worker runs with. Workers that differ in the last two cannot work together.",
    ["version", "signature_version", "plan"],
)
RECORDS = Counter("neardup_records_total", "Records processed by a stage, repeats included.", ["stage", "partition"])
RECORD_BYTES = Counter("neardup_record_bytes_total", "Bytes of the records processed by a stage.", ["stage"])
OUTPUTS = Counter("neardup_outputs_total", "Records produced and acknowledged.", ["stage", "topic"])
DEAD_LETTERS = Counter("neardup_dead_letters_total", "Records sent to dead-letters, by reason.", ["stage", "reason"])
PROCESS_SECONDS = Histogram(
    "neardup_process_seconds",
    "Time a stage took for one batch of records.",
    ["stage"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
ACKNOWLEDGE_SECONDS = Histogram(
    "neardup_acknowledge_seconds",
    "Time from sending a batch's first output to the last acknowledgement of its last wave.",
    ["stage"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
STAGE_SECONDS = Histogram(
    "neardup_stage_seconds",
    "Time from the writing of a batch's oldest record to the last acknowledgement of what the batch caused.",
    ["stage"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600),
)
BATCH_RECORDS = Histogram(
    "neardup_batch_records",
    "Records in one batch given to a stage.",
    ["stage"],
    buckets=(1, 3, 10, 30, 100, 300, 1000, 3000, 10_000),
)
CHECKPOINTS = Counter("neardup_checkpoints_total", "Checkpoints made durable and committed.", ["stage"])
CHECKPOINT_SECONDS = Histogram(
    "neardup_checkpoint_seconds",
    "Time to make the state of one partition durable.",
    ["stage"],
    buckets=(0.001, 0.01, 0.1, 0.5, 1, 5, 10, 60, 300),
)
CHECKPOINT_TIME = Gauge(
    "neardup_checkpoint_timestamp_seconds", "When the partition was last checkpointed.", ["stage", "partition"]
)
REPLAY = Gauge(
    "neardup_replay_records",
    "Records that a restart would read again, as of the last checkpoint.",
    ["stage", "partition"],
)
ASSIGNED = Gauge("neardup_assigned_partitions", "Partitions that this worker owns now.", ["stage"])
REBALANCES = Counter("neardup_rebalances_total", "Times this worker was given partitions.", ["stage"])
LAG = Gauge(
    "neardup_lag_records", "Records after the last processed one, per assigned partition.", ["stage", "partition"]
)
STUCK = Gauge("neardup_stuck_partitions", "Assigned partitions with lag and no progress for too long.", ["stage"])
BROKER_CONTACT_TIME = Gauge(
    "neardup_broker_contact_timestamp_seconds", "Time of the last answer from the broker to this worker.", ["stage"]
)
VERDICTS = Counter("neardup_verdicts_total", "Verdicts emitted, revisions included.", ["verdict", "relation"])
VERDICT_SECONDS = Histogram(
    "neardup_page_to_verdict_seconds",
    "Time from a page's timestamp to its first verdict, repeats included.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600),
)
PAGE_BYTES = Counter("neardup_page_bytes_total", "Bytes of the pages with a first verdict, skipped ones aside.")
DUPLICATE_BYTES = Counter("neardup_duplicate_bytes_total", "Bytes of the pages told to be duplicates.")
REVISIONS = Counter("neardup_revisions_total", "Pages told unique and then duplicate: an earlier page came late.")
PENDING_DOCUMENTS = Gauge(
    "neardup_pending_documents", "Documents that wait for answers or evidence, per owner.", ["partition"]
)
PENDING_BATCHES = Gauge(
    "neardup_pending_batches", "Batches that a shard partition has still to answer for, per owner.", ["partition"]
)
OLDEST_PENDING = Gauge(
    "neardup_oldest_pending_seconds", "Age of the page that waits longest, when last looked, per owner.", ["partition"]
)
CANDIDATES = Counter("neardup_candidates_total", "Fingerprints that tables found near a page and that were compared.")
CAPPED_CANDIDATES = Counter(
    "neardup_capped_candidates_total", "Candidates not compared because a page had too many; the nearest are."
)
DROPPED_VARIANTS = Counter(
    "neardup_dropped_variants_total", "Documents no longer compared with because their fingerprint had too many."
)
FORGOTTEN = Counter("neardup_forgotten_documents_total", "Documents dropped by order: forgotten urls and expired ones.")
DIRECTORY_DOCUMENTS = Gauge(
    "neardup_directory_documents", "Documents that an owner remembers, copies included.", ["partition"]
)
OWNER_CACHE_BYTES = Gauge(
    "neardup_owner_cache_bytes",
    "Memory that an owner's caches take: documents, and RocksDB's buffers, blocks, filters.",
    ["partition"],
)
SLICE_KEYS = Gauge(
    "neardup_slice_keys",
    "Keys that a shard partition holds: fingerprints (simhash) or bucket keys (bands), of which a page has several.",
    ["partition", "table"],
)
SLICE_BYTES = Gauge("neardup_slice_bytes", "Bytes of the runs of a shard partition and of its merges.", ["partition"])
SLICE_RUNS = Gauge("neardup_slice_runs", "Sorted runs of a shard partition; a probe looks into each.", ["partition"])
SLICE_EVENTS = Counter(
    "neardup_slice_events_total",
    "What slices did: probes, scanned, inserted, repeated, matches, capped, common, merges, expired.",
    ["event"],
)
RECALL_RESULTS = ("found", "missed")
RECALL_CHECKS = Counter(
    "neardup_recall_checks_total",
    "Near-duplicates that a canary or the shadow sample knew of, by whether the stream found them; repeats included.",
    ["source", "result"],
)
RECALL = Gauge("neardup_recall_ratio", "Share found of the last 1000 checks of a partition.", ["source", "partition"])
RECALL_LOW = Gauge("neardup_recall_low_ratio", "Lower end of its 95% interval (Wilson).", ["source", "partition"])
RECALL_HIGH = Gauge("neardup_recall_high_ratio", "Upper end of its 95% interval (Wilson).", ["source", "partition"])
ARCHIVED = Counter("neardup_archived_documents_total", "Documents written to the corpus, repeats included.")
HOST_DUPLICATES = Gauge(
    "neardup_host_duplicate_ratio",
    "Highest share of duplicates among hosts with many recent pages, recrawls aside; the log names the host.",
    ["partition"],
)
PASS_RESULTS = ("done", "failed", "interrupted")
PASSES = Counter("neardup_passes_total", "Offline passes, by how they ended: done, failed or interrupted.", ["result"])
PASS_RUNS = Gauge("neardup_pass_running", "1 while an offline pass runs in this worker.")
PASS_SECONDS = Gauge("neardup_pass_seconds", "Time that the last offline pass took.")
PASS_TIME = Gauge("neardup_pass_timestamp_seconds", "When the last offline pass ended well.")
CLUSTERED = Gauge("neardup_clustered_documents", "Documents in the last offline pass.")
CLUSTERS = Gauge("neardup_clusters", "Clusters that the last offline pass found, those of one document included.")
OVERTURNED = Counter("neardup_overturned_verdicts_total", "Verdicts of the stream that an offline pass revised.")


def withdraw(labels: tuple[str, ...], *gauges: Gauge) -> None:
    """Stop reporting what is no longer this worker's: another one reports it, and a sum would count it twice."""
    for gauge in gauges:
        with contextlib.suppress(KeyError):  # never set
            gauge.remove(*labels)
