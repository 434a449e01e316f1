"""What the workers of every service have in common."""

from deploy.grafana.panel import RATE, Panel, quantiles


def signals(stage: str) -> list[Panel]:
    """What a user of any stage would notice first."""
    return [
        Panel(
            "Records",
            "A second, per worker.",
            "ops",
            {"{{instance}}": f'sum by (instance) (rate(neardup_records_total{{stage="{stage}"}}{RATE}))'},
            stacked=True,
        ),
        quantiles(
            "Time through this stage",
            "From the writing of a record to the last acknowledgement of what it caused.",
            "neardup_stage_seconds",
            stage,
        ),
        Panel(
            "Dead letters",
            "In the last hour, by reason.",
            "short",
            {"{{reason}}": f'sum by (reason) (increase(neardup_dead_letters_total{{stage="{stage}"}}[1h])) > 0'},
        ),
        Panel(
            "Lag",
            "Records that wait, per partition.",
            "short",
            {"{{partition}}": f'max by (partition) (neardup_lag_records{{stage="{stage}"}})'},
        ),
    ]


def worker(stage: str) -> list[Panel]:
    """What every worker has."""
    ours = f'and on (instance) neardup_assigned_partitions{{stage="{stage}"}}'
    batch = f'rate(neardup_batch_records_sum{{stage="{stage}"}}{RATE})'
    batches = f'rate(neardup_batch_records_count{{stage="{stage}"}}{RATE})'
    return [
        quantiles("Time to process a batch", "In a worker thread.", "neardup_process_seconds", stage),
        Panel(
            "Records of a batch",
            "On average; more than one poll's worth cannot be.",
            "none",
            {"average": f"sum({batch}) / (sum({batches}) > 0)"},
        ),
        Panel(
            "Age of the last checkpoint",
            "Per partition. Grows while it has nothing to do.",
            "s",
            {"{{partition}}": f'time() - max by (partition) (neardup_checkpoint_timestamp_seconds{{stage="{stage}"}})'},
        ),
        Panel(
            "Replay after a restart",
            "Records that would be read again, per partition.",
            "short",
            {"{{partition}}": f'max by (partition) (neardup_replay_records{{stage="{stage}"}})'},
        ),
        quantiles("Time of a checkpoint", "To make one partition durable.", "neardup_checkpoint_seconds", stage),
        Panel(
            "Partitions",
            "That each worker has.",
            "none",
            {"{{instance}}": f'sum by (instance) (neardup_assigned_partitions{{stage="{stage}"}})'},
            stacked=True,
        ),
        Panel(
            "Processors",
            "In use, per worker.",
            "none",
            {"{{instance}}": f"sum by (instance) (rate(process_cpu_seconds_total{RATE}) {ours})"},
        ),
        Panel(
            "Memory",
            "Resident, per worker.",
            "bytes",
            {"{{instance}}": f"sum by (instance) (process_resident_memory_bytes {ours})"},
        ),
        Panel(
            "Rebalances",
            "In the last hour, per worker. Many: workers come and go, or are too slow to be heard.",
            "none",
            {"{{instance}}": f'sum by (instance) (increase(neardup_rebalances_total{{stage="{stage}"}}[1h]))'},
        ),
    ]


def sends(stage: str) -> list[Panel]:
    """What a worker that sends outputs has besides."""
    return [
        quantiles("Time to acknowledge a batch", "All waves of its outputs.", "neardup_acknowledge_seconds", stage),
        Panel(
            "Outputs",
            "A second, by topic.",
            "ops",
            {"{{topic}}": f'sum by (topic) (rate(neardup_outputs_total{{stage="{stage}"}}{RATE}))'},
        ),
    ]
