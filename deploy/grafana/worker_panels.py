"""Panels that the workers of every service have."""

from deploy.grafana.panel import RATE, Panel, quantiles


def signals(stage: str) -> list[Panel]:
    """Return the panels of traffic, latency, errors and saturation of a stage."""
    return [
        Panel(
            "Records",
            "Records per second, per worker.",
            "ops",
            {"{{instance}}": f'sum by (instance) (rate(neardup_records_total{{stage="{stage}"}}{RATE}))'},
            stacked=True,
        ),
        quantiles(
            "Time through this stage",
            "Time from the write of a record to the acknowledgement of its last output.",
            "neardup_stage_seconds",
            stage,
        ),
        Panel(
            "Dead letters",
            "Number of dead letters in the last hour by reason.",
            "short",
            {"{{reason}}": f'sum by (reason) (increase(neardup_dead_letters_total{{stage="{stage}"}}[1h])) > 0'},
        ),
        Panel(
            "Lag",
            "Number of records that are not yet processed, per partition.",
            "short",
            {"{{partition}}": f'max by (partition) (neardup_lag_records{{stage="{stage}"}})'},
        ),
    ]


def worker(stage: str) -> list[Panel]:
    """Return the panels of batches, checkpoints, partitions and resources of a stage."""
    ours = f'and on (instance) neardup_assigned_partitions{{stage="{stage}"}}'
    batch = f'rate(neardup_batch_records_sum{{stage="{stage}"}}{RATE})'
    batches = f'rate(neardup_batch_records_count{{stage="{stage}"}}{RATE})'
    return [
        quantiles(
            "Time to process a batch", "Time that a batch takes in a worker thread.", "neardup_process_seconds", stage
        ),
        Panel(
            "Records per batch",
            "Mean number of records in a batch. NEARDUP_POLL_RECORDS is the maximum.",
            "none",
            {"average": f"sum({batch}) / (sum({batches}) > 0)"},
        ),
        Panel(
            "Age of the last checkpoint",
            "Age of the last checkpoint per partition. It also grows while the partition is idle.",
            "s",
            {"{{partition}}": f'time() - max by (partition) (neardup_checkpoint_timestamp_seconds{{stage="{stage}"}})'},
        ),
        Panel(
            "Replay after a restart",
            "Number of records that a restart would process again, per partition.",
            "short",
            {"{{partition}}": f'max by (partition) (neardup_replay_records{{stage="{stage}"}})'},
        ),
        quantiles(
            "Time of a checkpoint", "Time to write the state of one partition.", "neardup_checkpoint_seconds", stage
        ),
        Panel(
            "Partitions",
            "Number of assigned partitions per worker.",
            "none",
            {"{{instance}}": f'sum by (instance) (neardup_assigned_partitions{{stage="{stage}"}})'},
            stacked=True,
        ),
        Panel(
            "Processors",
            "Number of processors in use per worker.",
            "none",
            {"{{instance}}": f"sum by (instance) (rate(process_cpu_seconds_total{RATE}) {ours})"},
        ),
        Panel(
            "Memory",
            "Resident memory per worker in bytes.",
            "bytes",
            {"{{instance}}": f"sum by (instance) (process_resident_memory_bytes {ours})"},
        ),
        Panel(
            "Rebalances",
            "Number of rebalances in the last hour per worker. Causes are workers that start, stop or miss heartbeats.",
            "none",
            {"{{instance}}": f'sum by (instance) (increase(neardup_rebalances_total{{stage="{stage}"}}[1h]))'},
        ),
    ]


def sends(stage: str) -> list[Panel]:
    """Return the panels of a stage that writes outputs."""
    return [
        quantiles(
            "Time to acknowledge a batch",
            "Time until the broker has acknowledged all waves of outputs of a batch.",
            "neardup_acknowledge_seconds",
            stage,
        ),
        Panel(
            "Outputs",
            "Outputs per second by topic.",
            "ops",
            {"{{topic}}": f'sum by (topic) (rate(neardup_outputs_total{{stage="{stage}"}}{RATE}))'},
        ),
    ]
