"""Every metric of neardup with its meaning, in one place.

Names follow the Prometheus conventions: a unit, `_total` for counters. Labels are bounded: stages, topics,
partitions and fixed words, never a url.
"""

from prometheus_client import Counter, Gauge, Histogram

RECORDS = Counter("neardup_records_total", "Records processed by a stage, repeats included.", ["stage", "partition"])
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
ASSIGNED = Gauge("neardup_assigned_partitions", "Partitions that this worker owns now.", ["stage"])
REBALANCES = Counter("neardup_rebalances_total", "Times this worker was given partitions.", ["stage"])
LAG = Gauge(
    "neardup_lag_records", "Records after the last processed one, per assigned partition.", ["stage", "partition"]
)
STUCK = Gauge("neardup_stuck_partitions", "Assigned partitions with lag and no progress for too long.", ["stage"])
VERDICTS = Counter("neardup_verdicts_total", "Verdicts emitted, revisions included.", ["verdict", "relation"])
