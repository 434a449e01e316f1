"""Panels of the individual services."""

from deploy.grafana.overview_panels import TO_VERDICT, VERDICTS
from deploy.grafana.panel import RATE, Panel, recall_of

FEATURIZER = [
    Panel(
        "Pages in",
        "Bytes per second of the records read from the pages topic.",
        "Bps",
        {"read": f'sum(rate(neardup_record_bytes_total{{stage="featurizer"}}{RATE}))'},
    ),
    Panel(
        "Page size",
        "Mean size of a record in bytes.",
        "bytes",
        {
            "average": f'sum(rate(neardup_record_bytes_total{{stage="featurizer"}}{RATE}))'
            f' / (sum(rate(neardup_records_total{{stage="featurizer"}}{RATE})) > 0)'
        },
    ),
    Panel(
        "Skipped pages",
        "Pages per second that are skipped because they are too short, empty or not text. The aggregator emits their "
        "verdicts.",
        "ops",
        {"skipped": f'sum(rate(neardup_verdicts_total{{verdict="skipped"}}{RATE}))'},
    ),
]

SHARDS = [
    Panel(
        "Probes",
        "Probes per second over all slices. A page probes one slice of every table.",
        "ops",
        {"{{event}}": f'sum by (event) (rate(neardup_slice_events_total{{event=~"probes|inserted|repeated"}}{RATE}))'},
    ),
    Panel(
        "Matches per probe",
        "Mean number of matches per probe. It is high for common content, or if buckets are near the limit.",
        "none",
        {
            "matches": f'sum(rate(neardup_slice_events_total{{event="matches"}}{RATE}))'
            f' / (sum(rate(neardup_slice_events_total{{event="probes"}}{RATE})) > 0)'
        },
    ),
    Panel(
        "Entries scanned per probe",
        "Mean number of entries compared per probe. It is high if fingerprints cluster, or if tables have too few "
        "leading bits.",
        "none",
        {
            "scanned": f'sum(rate(neardup_slice_events_total{{event="scanned"}}{RATE}))'
            f' / (sum(rate(neardup_slice_events_total{{event="probes"}}{RATE})) > 0)'
        },
    ),
    Panel("Keys", "Number of keys per slice.", "short", {"{{partition}}": "max by (partition) (neardup_slice_keys)"}),
    Panel(
        "Skew",
        "Keys of the largest slice of a table divided by the mean of its slices.",
        "none",
        {"{{table}}": "max by (table) (neardup_slice_keys) / avg by (table) (neardup_slice_keys > 0)"},
    ),
    Panel(
        "Slice memory",
        "Memory of the slices of each worker in bytes.",
        "bytes",
        {"{{instance}}": "sum by (instance) (neardup_slice_bytes)"},
    ),
    Panel(
        "Runs",
        "Largest number of sorted runs of a slice. A probe searches every run.",
        "none",
        {"{{instance}}": "max by (instance) (neardup_slice_runs)"},
    ),
    Panel(
        "Merges",
        "Merges of sorted runs per minute.",
        "none",
        {"merges": f'60 * sum(rate(neardup_slice_events_total{{event="merges"}}{RATE}))'},
    ),
    Panel(
        "Cut short",
        "Per second: probes with more matches than the cap, probes of common buckets, and expired keys.",
        "ops",
        {"{{event}}": f'sum by (event) (rate(neardup_slice_events_total{{event=~"capped|common|expired"}}{RATE}))'},
    ),
]

AGGREGATOR = [
    TO_VERDICT,
    VERDICTS,
    Panel(
        "Pending documents",
        "Number of documents that wait for answers from shards or evidence from other owners, per owner.",
        "short",
        {"{{partition}}": "max by (partition) (neardup_pending_documents)"},
    ),
    Panel(
        "Oldest pending document",
        "Age of the oldest pending document per owner, at its last measurement.",
        "s",
        {"{{partition}}": "max by (partition) (neardup_oldest_pending_seconds)"},
    ),
    Panel(
        "Pending batches",
        "Number of batches that wait for the answer of a shard partition, per owner.",
        "short",
        {"{{partition}}": "max by (partition) (neardup_pending_batches)"},
    ),
    Panel(
        "Candidates per page",
        "Mean number of candidates per page that tables found and owners compared.",
        "none",
        {
            "candidates": f"sum(rate(neardup_candidates_total{RATE}))"
            f" / (sum(rate(neardup_page_to_verdict_seconds_count{RATE})) > 0)"
        },
    ),
    Panel(
        "Revisions",
        "Verdicts per second that change from unique to duplicate because an earlier page arrived late.",
        "ops",
        {"revisions": f"sum(rate(neardup_revisions_total{RATE}))"},
    ),
    Panel(
        "Cut short",
        "Per second: candidates and variants over their caps, and documents forgotten by command.",
        "ops",
        {
            "candidates": f"sum(rate(neardup_capped_candidates_total{RATE}))",
            "variants": f"sum(rate(neardup_dropped_variants_total{RATE}))",
            "forgotten": f"sum(rate(neardup_forgotten_documents_total{RATE}))",
        },
    ),
    Panel(
        "Canaries",
        "Planted near-copies of pages per hour, and their results.",
        "short",
        {
            "planted": 'sum(increase(neardup_outputs_total{stage="canary"}[1h]))',
            "{{result}}": 'sum by (result) (increase(neardup_recall_checks_total{source="canary"}[1h]))',
        },
    ),
    Panel(
        "Recall by canaries",
        "Recall over the last 1000 canaries of each owner, with its 95% confidence interval.",
        "percentunit",
        recall_of("canary"),
    ),
    Panel(
        "Documents",
        "Number of documents in the directory of each owner, including copies.",
        "short",
        {"{{partition}}": "max by (partition) (neardup_directory_documents)"},
        stacked=True,
    ),
    Panel(
        "Caches",
        "Memory of the caches of each owner. It grows to a limit and stays there.",
        "bytes",
        {"{{partition}}": "max by (partition) (neardup_owner_cache_bytes)"},
        stacked=True,
    ),
]

RECLUSTER = [
    Panel(
        "Archived documents",
        "Documents written to the corpus per second, including repeats.",
        "ops",
        {"archived": f"sum(rate(neardup_archived_documents_total{RATE}))"},
    ),
    Panel(
        "Passes",
        "Number of offline passes in the last day by result.",
        "none",
        {"{{result}}": "sum by (result) (increase(neardup_passes_total[1d]))"},
    ),
    Panel(
        "Age of the last pass",
        "Time since the last successful offline pass.",
        "s",
        {"age": "time() - max(neardup_pass_timestamp_seconds > 0)"},
    ),
    Panel(
        "Shadow checks",
        "Documents per hour in the shadow sample that by the rule duplicate a recent document, and whether the stream "
        "found them.",
        "short",
        {"{{result}}": 'sum by (result) (increase(neardup_recall_checks_total{source="shadow"}[1h]))'},
    ),
    Panel(
        "Recall by the shadow sample",
        "Recall over the last 1000 checks of each partition, with its 95% confidence interval.",
        "percentunit",
        recall_of("shadow"),
    ),
    Panel(
        "Hosts",
        "Highest share of duplicates of a host with many recent pages, per partition.",
        "percentunit",
        {"{{partition}}": "max by (partition) (neardup_host_duplicate_ratio)"},
    ),
    Panel(
        "Duration of the last pass", "Duration of the last offline pass.", "s", {"pass": "max(neardup_pass_seconds)"}
    ),
    Panel(
        "Running passes", "Number of offline passes that are running.", "none", {"passes": "sum(neardup_pass_running)"}
    ),
    Panel(
        "Documents and clusters",
        "Number of documents and clusters in the last pass. A document without duplicates is a cluster of its own.",
        "short",
        {"documents": "max(neardup_clustered_documents)", "clusters": "max(neardup_clusters)"},
    ),
    Panel(
        "Overturned verdicts",
        "Number of verdicts of the stream that offline passes revised in the last day.",
        "short",
        {"overturned": "sum(increase(neardup_overturned_verdicts_total[1d]))"},
    ),
]
