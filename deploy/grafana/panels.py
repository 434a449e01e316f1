"""What the dashboards show.

Each begins with what a user of the service would notice: traffic, latency, errors, saturation. What is particular to
the service follows, and last what every worker has.
"""

from dataclasses import dataclass

RATE = "[$__rate_interval]"
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True)
class Panel:
    """One picture. `queries`: what the legend says → what Prometheus is asked. `is_alarm`: anything but 0 is red."""

    title: str
    description: str
    unit: str
    queries: dict[str, str]
    is_stat: bool = False
    is_alarm: bool = False
    stacked: bool = False


def stat(title: str, description: str, unit: str, query: str, *, is_alarm: bool = False) -> Panel:
    """A number."""
    return Panel(title, description, unit, {"": query}, is_stat=True, is_alarm=is_alarm)


def quantiles(title: str, description: str, metric: str, stage: str | None = None) -> Panel:
    """Three quantiles of a histogram in seconds; of one stage, where it has stages."""
    chosen = f'{{stage="{stage}"}}' if stage else ""
    queries = {
        name: f"histogram_quantile({quantile}, sum by (le) (rate({metric}_bucket{chosen}{RATE})))"
        for name, quantile in QUANTILES.items()
    }
    return Panel(title, description, "s", queries)


def recall_of(source: str) -> dict[str, str]:
    """Estimate and bounds, as the workers say them."""
    names = {"": "recall", ", at least": "recall_low", ", at most": "recall_high"}
    return {
        f"{{{{partition}}}}{bound}": f'max by (partition) (neardup_{name}_ratio{{source="{source}"}})'
        for bound, name in names.items()
    }


TO_VERDICT = quantiles(
    "Time from page to verdict",
    "From a page's timestamp to its first verdict. A crawler that sends old timestamps, or a rebuild, shows up here.",
    "neardup_page_to_verdict_seconds",
)
VERDICTS = Panel(
    "Verdicts",
    "Verdicts a second by kind and relation, revisions included.",
    "ops",
    {"{{verdict}} {{relation}}": f"sum by (verdict, relation) (rate(neardup_verdicts_total{RATE}))"},
    stacked=True,
)
RECALL = Panel(
    "Recall",
    "Of the near-duplicates that canaries or the shadow sample knew of in the last hour, the share that was found, and "
    "between what bounds the true one is (95%).",
    "percentunit",
    {
        "{{source}}": "max by (source) (source:neardup_recall:ratio1h)",
        "{{source}}, at least": "max by (source) (source:neardup_recall:low1h)",
        "{{source}}, at most": "max by (source) (source:neardup_recall:high1h)",
    },
)

OVERVIEW = [
    stat(
        "Pages", "A second, repeats included.", "ops", f'sum(rate(neardup_records_total{{stage="featurizer"}}{RATE}))'
    ),
    stat(
        "Time from page to verdict, p99",
        "Of the last minutes.",
        "s",
        f"histogram_quantile(0.99, sum by (le) (rate(neardup_page_to_verdict_seconds_bucket{RATE})))",
    ),
    stat("Waiting", "Records that no stage has taken yet.", "short", "sum(neardup_lag_records)"),
    stat(
        "Alerts",
        "That fire now; the runbook says what each asks of you.",
        "none",
        'count(ALERTS{alertname=~"Neardup.*", alertstate="firing"}) or vector(0)',
        is_alarm=True,
    ),
    Panel(
        "Records",
        "Records a second through each stage, repeats included.",
        "ops",
        {"{{stage}}": f"sum by (stage) (rate(neardup_records_total{RATE}))"},
    ),
    TO_VERDICT,
    Panel(
        "Dead letters",
        "In the last hour, by reason. The pages concerned have no verdict.",
        "short",
        {"{{stage}} {{reason}}": "sum by (stage, reason) (increase(neardup_dead_letters_total[1h])) > 0"},
    ),
    Panel("Lag", "Records that wait, per stage.", "short", {"{{stage}}": "sum by (stage) (neardup_lag_records)"}),
    VERDICTS,
    Panel(
        "Time through a stage, p99",
        "From the writing of a record to the last acknowledgement of what it caused.",
        "s",
        {"{{stage}}": f"histogram_quantile(0.99, sum by (le, stage) (rate(neardup_stage_seconds_bucket{RATE})))"},
    ),
    Panel(
        "Bytes",
        "Of pages with a verdict, and of those among them that are duplicates.",
        "Bps",
        {
            "pages": f"sum(rate(neardup_page_bytes_total{RATE}))",
            "duplicates": f"sum(rate(neardup_duplicate_bytes_total{RATE}))",
        },
    ),
    Panel(
        "Bytes saved",
        "Share of all bytes so far that are in duplicates.",
        "percentunit",
        {"saved": "sum(neardup_duplicate_bytes_total) / (sum(neardup_page_bytes_total) > 0)"},
    ),
    RECALL,
    Panel(
        "Host with most duplicates",
        "Its share, among hosts with many recent pages, recrawls aside. Near 1: it is wiped out. The log names it.",
        "percentunit",
        {"worst host": "max(neardup_host_duplicate_ratio)"},
    ),
    Panel(
        "Workers",
        "1 answers Prometheus, 0 does not.",
        "none",
        {"{{instance}}": 'sum by (instance) (up{job="neardup"})'},
    ),
    Panel(
        "Stuck partitions",
        "Partitions with lag and no progress; a worker with one is not ready.",
        "none",
        {"{{stage}}": "sum by (stage) (neardup_stuck_partitions)"},
    ),
    Panel(
        "Plans",
        "Workers by what they run with. More than one line: they refuse each other's messages.",
        "none",
        {"{{version}} {{plan}}": "count by (version, plan) (neardup_build_info)"},
    ),
    Panel(
        "Age of the oldest checkpoint",
        "Grows while a stage has nothing to do.",
        "s",
        {"{{stage}}": "max by (stage) (time() - neardup_checkpoint_timestamp_seconds)"},
    ),
]

FEATURIZER = [
    Panel(
        "Pages in",
        "Bytes a second of the records read from pages.",
        "Bps",
        {"read": f'sum(rate(neardup_record_bytes_total{{stage="featurizer"}}{RATE}))'},
    ),
    Panel(
        "Bytes of a page",
        "The average record.",
        "bytes",
        {
            "average": f'sum(rate(neardup_record_bytes_total{{stage="featurizer"}}{RATE}))'
            f' / (sum(rate(neardup_records_total{{stage="featurizer"}}{RATE})) > 0)'
        },
    ),
    Panel(
        "Skipped pages",
        "A second: too short, empty or not text. The aggregator tells them.",
        "ops",
        {"skipped": f'sum(rate(neardup_verdicts_total{{verdict="skipped"}}{RATE}))'},
    ),
]

SHARDS = [
    Panel(
        "Probes",
        "A second, over all slices; a page probes one slice of every table.",
        "ops",
        {"{{event}}": f'sum by (event) (rate(neardup_slice_events_total{{event=~"probes|inserted|repeated"}}{RATE}))'},
    ),
    Panel(
        "Matches of a probe",
        "On average. Many: common content, or buckets near the limit.",
        "none",
        {
            "matches": f'sum(rate(neardup_slice_events_total{{event="matches"}}{RATE}))'
            f' / (sum(rate(neardup_slice_events_total{{event="probes"}}{RATE})) > 0)'
        },
    ),
    Panel(
        "Scanned by a probe",
        "Entries that it was compared with, on average. Many: fingerprints crowd, or tables have too few leading bits.",
        "none",
        {
            "scanned": f'sum(rate(neardup_slice_events_total{{event="scanned"}}{RATE}))'
            f' / (sum(rate(neardup_slice_events_total{{event="probes"}}{RATE})) > 0)'
        },
    ),
    Panel("Keys", "Per slice.", "short", {"{{partition}}": "max by (partition) (neardup_slice_keys)"}),
    Panel(
        "Skew",
        "The largest slice against the average one of such a table.",
        "none",
        {"{{table}}": "max by (table) (neardup_slice_keys) / avg by (table) (neardup_slice_keys > 0)"},
    ),
    Panel("Bytes of slices", "Per worker.", "bytes", {"{{instance}}": "sum by (instance) (neardup_slice_bytes)"}),
    Panel(
        "Runs",
        "Of the slice with most; a probe looks into each.",
        "none",
        {"{{instance}}": "max by (instance) (neardup_slice_runs)"},
    ),
    Panel(
        "Merges",
        "Of runs, a minute.",
        "none",
        {"merges": f'60 * sum(rate(neardup_slice_events_total{{event="merges"}}{RATE}))'},
    ),
    Panel(
        "Cut short",
        "A second: probes with more matches than the cap, probes of common buckets, keys expired or forgotten.",
        "ops",
        {
            "{{event}}": "sum by (event) (rate("
            f'neardup_slice_events_total{{event=~"capped|common|expired|forgotten"}}{RATE}))'
        },
    ),
]

AGGREGATOR = [
    TO_VERDICT,
    VERDICTS,
    Panel(
        "Documents that wait",
        "For the answers of shards or the evidence of owners, per owner.",
        "short",
        {"{{partition}}": "max by (partition) (neardup_pending_documents)"},
    ),
    Panel(
        "Oldest that waits",
        "Per owner, when its worker last looked.",
        "s",
        {"{{partition}}": "max by (partition) (neardup_oldest_pending_seconds)"},
    ),
    Panel(
        "Batches that wait",
        "For a shard partition's answer, per owner.",
        "short",
        {"{{partition}}": "max by (partition) (neardup_pending_batches)"},
    ),
    Panel(
        "Candidates of a page",
        "That tables found and owners compared, on average.",
        "none",
        {
            "candidates": f"sum(rate(neardup_candidates_total{RATE}))"
            f" / (sum(rate(neardup_page_to_verdict_seconds_count{RATE})) > 0)"
        },
    ),
    Panel(
        "Revisions",
        "A second: pages told unique and then duplicate, because an earlier one came late.",
        "ops",
        {"revisions": f"sum(rate(neardup_revisions_total{RATE}))"},
    ),
    Panel(
        "Cut short",
        "A second: candidates and variants over the caps, documents forgotten by order.",
        "ops",
        {
            "candidates": f"sum(rate(neardup_capped_candidates_total{RATE}))",
            "variants": f"sum(rate(neardup_dropped_variants_total{RATE}))",
            "forgotten": f"sum(rate(neardup_forgotten_documents_total{RATE}))",
        },
    ),
    Panel(
        "Canaries",
        "An hour: near-copies planted among the pages, and what became of them.",
        "short",
        {
            "planted": 'sum(increase(neardup_outputs_total{stage="canary"}[1h]))',
            "{{result}}": 'sum by (result) (increase(neardup_recall_checks_total{source="canary"}[1h]))',
        },
    ),
    Panel(
        "Recall by canaries",
        "Of the last 1000 that each owner has settled.",
        "percentunit",
        recall_of("canary"),
    ),
    Panel(
        "Documents",
        "That an owner remembers, copies included.",
        "short",
        {"{{partition}}": "max by (partition) (neardup_directory_documents)"},
        stacked=True,
    ),
    Panel(
        "Caches",
        "Memory that an owner's caches take. They fill, and then stay.",
        "bytes",
        {"{{partition}}": "max by (partition) (neardup_owner_cache_bytes)"},
        stacked=True,
    ),
]

RECLUSTER = [
    Panel(
        "Archived documents",
        "Written to the corpus a second, repeats included.",
        "ops",
        {"archived": f"sum(rate(neardup_archived_documents_total{RATE}))"},
    ),
    Panel(
        "Passes",
        "In the last day, by how they ended.",
        "none",
        {"{{result}}": "sum by (result) (increase(neardup_passes_total[1d]))"},
    ),
    Panel(
        "Age of the last pass",
        "Since one ended well.",
        "s",
        {"age": "time() - max(neardup_pass_timestamp_seconds > 0)"},
    ),
    Panel(
        "Shadow checks",
        "An hour: documents of the sample that duplicate a recent one by the rule, and what the stream said of them.",
        "short",
        {"{{result}}": 'sum by (result) (increase(neardup_recall_checks_total{source="shadow"}[1h]))'},
    ),
    Panel(
        "Recall by the shadow sample",
        "Of the last 1000 checks of each partition.",
        "percentunit",
        recall_of("shadow"),
    ),
    Panel(
        "Hosts",
        "The highest share of duplicates of a host with many recent pages, per partition.",
        "percentunit",
        {"{{partition}}": "max by (partition) (neardup_host_duplicate_ratio)"},
    ),
    Panel("Time of the last pass", "From start to end.", "s", {"pass": "max(neardup_pass_seconds)"}),
    Panel(
        "Documents and clusters",
        "Of the last pass; a document alone is a cluster.",
        "short",
        {"documents": "max(neardup_clustered_documents)", "clusters": "max(neardup_clusters)"},
    ),
    Panel(
        "Overturned verdicts",
        "Of the stream, revised by passes in the last day.",
        "short",
        {"overturned": "sum(increase(neardup_overturned_verdicts_total[1d]))"},
    ),
]


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


def service(stage: str, own: list[Panel], *, is_sender: bool = True) -> list[Panel]:
    """The dashboard of a service."""
    return [*signals(stage), *own, *(sends(stage) if is_sender else []), *worker(stage)]


ALL = {
    "overview": ("neardup: overview", OVERVIEW),
    "featurizer": ("neardup: featurizer", service("featurizer", FEATURIZER)),
    "shards": ("neardup: shards", service("shard", SHARDS)),
    "aggregator": ("neardup: aggregator", service("aggregator", AGGREGATOR)),
    "recluster": ("neardup: recluster", service("recluster", RECLUSTER, is_sender=False)),
}
