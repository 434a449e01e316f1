"""What is particular to each service."""

from deploy.grafana.overview_panels import TO_VERDICT, VERDICTS
from deploy.grafana.panel import RATE, Panel, recall_of

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
        "A second: probes with more matches than the cap, probes of common buckets, keys expired.",
        "ops",
        {"{{event}}": f'sum by (event) (rate(neardup_slice_events_total{{event=~"capped|common|expired"}}{RATE}))'},
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
    Panel("Passes that run", "1 while one runs.", "none", {"passes": "sum(neardup_pass_running)"}),
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
