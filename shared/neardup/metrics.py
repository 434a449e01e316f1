"""All Prometheus metrics of neardup, with their help texts.

Names follow the Prometheus conventions: they end with the unit, and counters end with `_total`. The number of label
values is bounded: labels are stages, topics, partitions and fixed words, never URLs.
"""

import contextlib

from prometheus_client import Counter, Gauge, Histogram

BUILD_INFO = Gauge(
    "neardup_build_info",
    "Always 1. The labels give the release, the signature version and the plan of this worker. Workers with "
    "different signature versions or plans cannot work together.",
    ["version", "signature_version", "plan"],
)
RECORDS = Counter(
    "neardup_records_total",
    "Number of records that a stage processed, including records processed again after a restart.",
    ["stage", "partition"],
)
RECORD_BYTES = Counter("neardup_record_bytes_total", "Size of the records that a stage processed, in bytes.", ["stage"])
OUTPUTS = Counter(
    "neardup_outputs_total", "Number of records that a stage produced and the broker acknowledged.", ["stage", "topic"]
)
DEAD_LETTERS = Counter(
    "neardup_dead_letters_total", "Number of records sent to the dead-letters topic, by reason.", ["stage", "reason"]
)
PROCESS_SECONDS = Histogram(
    "neardup_process_seconds",
    "Time that a stage took to process one batch of records, in seconds.",
    ["stage"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
ACKNOWLEDGE_SECONDS = Histogram(
    "neardup_acknowledge_seconds",
    "Time from sending the first output of a batch to the acknowledgement of the last one, in seconds.",
    ["stage"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
STAGE_SECONDS = Histogram(
    "neardup_stage_seconds",
    "Time from the timestamp of the oldest record of a batch to the acknowledgement of the last output of the "
    "batch, in seconds.",
    ["stage"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600),
)
BATCH_RECORDS = Histogram(
    "neardup_batch_records",
    "Number of records in a batch that a stage processed.",
    ["stage"],
    buckets=(1, 3, 10, 30, 100, 300, 1000, 3000, 10_000),
)
CHECKPOINTS = Counter(
    "neardup_checkpoints_total", "Number of checkpoints that were made durable and committed.", ["stage"]
)
CHECKPOINT_SECONDS = Histogram(
    "neardup_checkpoint_seconds",
    "Time to make the state of one partition durable, in seconds.",
    ["stage"],
    buckets=(0.001, 0.01, 0.1, 0.5, 1, 5, 10, 60, 300),
)
CHECKPOINT_TIME = Gauge(
    "neardup_checkpoint_timestamp_seconds", "Unix time of the last checkpoint of a partition.", ["stage", "partition"]
)
REPLAY = Gauge(
    "neardup_replay_records",
    "Number of records that a restart would process again, as of the last checkpoint.",
    ["stage", "partition"],
)
ASSIGNED = Gauge("neardup_assigned_partitions", "Number of partitions that are assigned to this worker.", ["stage"])
REBALANCES = Counter(
    "neardup_rebalances_total", "Number of times that partitions were assigned to this worker.", ["stage"]
)
LAG = Gauge(
    "neardup_lag_records", "Number of records in a partition that are not yet processed.", ["stage", "partition"]
)
STUCK = Gauge(
    "neardup_stuck_partitions",
    "Number of assigned partitions with lag and without progress for longer than NEARDUP_STUCK_SECONDS.",
    ["stage"],
)
BROKER_CONTACT_TIME = Gauge(
    "neardup_broker_contact_timestamp_seconds",
    "Unix time of the last answer from the broker to this worker.",
    ["stage"],
)
VERDICTS = Counter(
    "neardup_verdicts_total", "Number of verdicts produced, including revisions.", ["verdict", "relation"]
)
VERDICT_SECONDS = Histogram(
    "neardup_page_to_verdict_seconds",
    "Time from the timestamp of a page to its first verdict in seconds, including repeated verdicts after a restart.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600),
)
PAGE_BYTES = Counter(
    "neardup_page_bytes_total", "Size of the pages with a first verdict in bytes, without skipped pages."
)
DUPLICATE_BYTES = Counter("neardup_duplicate_bytes_total", "Size of the pages with the verdict duplicate in bytes.")
REVISIONS = Counter(
    "neardup_revisions_total",
    "Number of verdicts that the stream revised from unique to duplicate because an earlier page arrived late.",
)
PENDING_DOCUMENTS = Gauge(
    "neardup_pending_documents",
    "Number of documents that wait for answers from shards or for evidence from other owners.",
    ["partition"],
)
PENDING_BATCHES = Gauge(
    "neardup_pending_batches",
    "Number of batches for which at least one shard partition has not answered yet.",
    ["partition"],
)
OLDEST_PENDING = Gauge(
    "neardup_oldest_pending_seconds",
    "Age of the oldest pending document in seconds, measured when the partition last processed a batch.",
    ["partition"],
)
CANDIDATES = Counter("neardup_candidates_total", "Number of candidates that tables returned and that were compared.")
CAPPED_CANDIDATES = Counter(
    "neardup_capped_candidates_total",
    "Number of candidates that were not compared because a page had more than NEARDUP_CANDIDATES of them.",
)
DROPPED_VARIANTS = Counter(
    "neardup_dropped_variants_total",
    "Number of documents removed from later comparisons because their fingerprint had more than NEARDUP_VARIANTS "
    "documents.",
)
FORGOTTEN = Counter(
    "neardup_forgotten_documents_total", "Number of documents removed by `neardup forget` and `neardup expire`."
)
DIRECTORY_DOCUMENTS = Gauge(
    "neardup_directory_documents", "Number of documents in the directory of an owner, including copies.", ["partition"]
)
OWNER_CACHE_BYTES = Gauge(
    "neardup_owner_cache_bytes",
    "Memory of the caches of an owner in bytes: documents, and the buffers, blocks and filters of RocksDB.",
    ["partition"],
)
SLICE_KEYS = Gauge(
    "neardup_slice_keys",
    "Number of keys in a shard partition: fingerprints (simhash) or bucket keys (bands), of which a page has several.",
    ["partition", "table"],
)
SLICE_BYTES = Gauge(
    "neardup_slice_bytes", "Memory of the sorted runs of a shard partition and of their merges in bytes.", ["partition"]
)
SLICE_RUNS = Gauge(
    "neardup_slice_runs", "Number of sorted runs of a shard partition. A probe searches each of them.", ["partition"]
)
SLICE_EVENTS = Counter(
    "neardup_slice_events_total",
    "Number of events in shard partitions, by kind: probes received (probes), entries compared (scanned), entries "
    "inserted (inserted) or already present (repeated), matches returned (matches), probes with more than "
    "NEARDUP_MOST_MATCHES (capped), probes of common buckets (common), merges of sorted runs (merges), and entries "
    "removed because of their age (expired).",
    ["event"],
)
RECALL_RESULTS = ("found", "missed")
RECALL_CHECKS = Counter(
    "neardup_recall_checks_total",
    "Number of near-duplicates known from canaries or the shadow sample that the stream found or missed, including "
    "repeats.",
    ["source", "result"],
)
RECALL = Gauge(
    "neardup_recall_ratio",
    "Share of the last 1000 recall checks of a partition in which the stream found the near-duplicate.",
    ["source", "partition"],
)
RECALL_LOW = Gauge(
    "neardup_recall_low_ratio",
    "Lower end of the 95% confidence interval (Wilson) of the recall of a partition.",
    ["source", "partition"],
)
RECALL_HIGH = Gauge(
    "neardup_recall_high_ratio",
    "Upper end of the 95% confidence interval (Wilson) of the recall of a partition.",
    ["source", "partition"],
)
ARCHIVED = Counter(
    "neardup_archived_documents_total",
    "Number of documents written to the corpus, including documents written again after a restart.",
)
HOST_DUPLICATES = Gauge(
    "neardup_host_duplicate_ratio",
    "Highest share of duplicates among the hosts with at least NEARDUP_HOST_PAGES recent pages, without "
    "recrawls. The log names the host.",
    ["partition"],
)
PASS_RESULTS = ("done", "failed", "interrupted")
PASSES = Counter(
    "neardup_passes_total", "Number of offline passes that ended, by result: done, failed or interrupted.", ["result"]
)
PASS_RUNS = Gauge("neardup_pass_running", "1 while this worker runs an offline pass, otherwise 0.")
PASS_SECONDS = Gauge("neardup_pass_seconds", "Duration of the last offline pass in seconds.")
PASS_TIME = Gauge("neardup_pass_timestamp_seconds", "Unix time at which the last successful offline pass ended.")
CLUSTERED = Gauge("neardup_clustered_documents", "Number of documents in the last offline pass.")
CLUSTERS = Gauge(
    "neardup_clusters", "Number of clusters that the last offline pass found, including clusters of one document."
)
OVERTURNED = Counter(
    "neardup_overturned_verdicts_total", "Number of verdicts of the stream that an offline pass revised."
)


def withdraw(labels: tuple[str, ...], *gauges: Gauge) -> None:
    """Remove the series with these labels: the worker that takes over a partition reports them from then on."""
    for gauge in gauges:
        with contextlib.suppress(KeyError):  # the series was never set
            gauge.remove(*labels)
