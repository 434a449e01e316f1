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
            "Dead letters of the last hour by reason.",
            "short",
            {"{{reason}}": f'sum by (reason) (increase(neardup_dead_letters_total{{stage="{stage}"}}[1h])) > 0'},
        ),
        Panel(
            "Lag",
            "Records that are not yet read, per partition.",
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
        quantiles("Time to process a batch", "Time in a worker thread.", "neardup_process_seconds", stage),
        Panel(
            "Records per batch",
            "Mean number of records. One poll is the maximum.",
            "none",
            {"average": f"sum({batch}) / (sum({batches}) > 0)"},
        ),
        Panel(
            "Age of the last checkpoint",
            "Age per partition. It also grows while the partition is idle.",
            "s",
            {"{{partition}}": f'time() - max by (partition) (neardup_checkpoint_timestamp_seconds{{stage="{stage}"}})'},
        ),
        Panel(
            "Replay after a restart",
            "Records that a restart would read again, per partition.",
            "short",
            {"{{partition}}": f'max by (partition) (neardup_replay_records{{stage="{stage}"}})'},
        ),
        quantiles(
            "Time of a checkpoint", "Time to write the state of one partition.", "neardup_checkpoint_seconds", stage
        ),
        Panel(
            "Partitions",
            "Partitions per worker.",
            "none",
            {"{{instance}}": f'sum by (instance) (neardup_assigned_partitions{{stage="{stage}"}})'},
            stacked=True,
        ),
        Panel(
            "Processors",
            "Processors in use per worker.",
            "none",
            {"{{instance}}": f"sum by (instance) (rate(process_cpu_seconds_total{RATE}) {ours})"},
        ),
        Panel(
            "Memory",
            "Resident memory per worker.",
            "bytes",
            {"{{instance}}": f"sum by (instance) (process_resident_memory_bytes {ours})"},
        ),
        Panel(
            "Rebalances",
            "Rebalances of the last hour per worker, caused by workers that come, go or are too slow.",
            "none",
            {"{{instance}}": f'sum by (instance) (increase(neardup_rebalances_total{{stage="{stage}"}}[1h]))'},
        ),
    ]


def sends(stage: str) -> list[Panel]:
    """Return the panels of a stage that writes outputs."""
    return [
        quantiles(
            "Time to acknowledge a batch",
            "Time until all waves of outputs are acknowledged.",
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
