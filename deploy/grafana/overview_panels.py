"""Panels of the overview: first the symptoms that users notice, then those for operators."""

from deploy.grafana.panel import RATE, Panel, quantiles, stat

TO_VERDICT = quantiles(
    "Time from page to verdict",
    "Time from the timestamp of a page to its first verdict. Old timestamps from a crawler, and a rebuild, raise it.",
    "neardup_page_to_verdict_seconds",
)
VERDICTS = Panel(
    "Verdicts",
    "Verdicts per second by kind and relation, including revisions.",
    "ops",
    {"{{verdict}} {{relation}}": f"sum by (verdict, relation) (rate(neardup_verdicts_total{RATE}))"},
    stacked=True,
)
RECALL = Panel(
    "Recall",
    "Share of the near-duplicates known to canaries or to the shadow sample in the last hour that the stream found, "
    "with the bounds of its 95% confidence interval.",
    "percentunit",
    {
        "{{source}}": "max by (source) (source:neardup_recall:ratio1h)",
        "{{source}}, at least": "max by (source) (source:neardup_recall:low1h)",
        "{{source}}, at most": "max by (source) (source:neardup_recall:high1h)",
    },
)

OVERVIEW = [
    stat(
        "Pages",
        "Pages per second, including repeats.",
        "ops",
        f'sum(rate(neardup_records_total{{stage="featurizer"}}{RATE}))',
    ),
    stat(
        "Time from page to verdict, p99",
        "99th percentile of the last minutes.",
        "s",
        f"histogram_quantile(0.99, sum by (le) (rate(neardup_page_to_verdict_seconds_bucket{RATE})))",
    ),
    stat("Lag", "Records that no stage has read yet.", "short", "sum(neardup_lag_records)"),
    stat(
        "Alerts",
        "Alerts that fire now. The runbook has a section for each.",
        "none",
        'count(ALERTS{alertname=~"Neardup.*", alertstate="firing"}) or vector(0)',
        is_alarm=True,
    ),
    Panel(
        "Records",
        "Records per second through each stage, including repeats.",
        "ops",
        {"{{stage}}": f"sum by (stage) (rate(neardup_records_total{RATE}))"},
    ),
    TO_VERDICT,
    Panel(
        "Dead letters",
        "Dead letters of the last hour by reason. Their pages have no verdict.",
        "short",
        {"{{stage}} {{reason}}": "sum by (stage, reason) (increase(neardup_dead_letters_total[1h])) > 0"},
    ),
    Panel(
        "Lag by stage",
        "Records that are not yet read, per stage.",
        "short",
        {"{{stage}}": "sum by (stage) (neardup_lag_records)"},
    ),
    VERDICTS,
    Panel(
        "Time through a stage, p99",
        "99th percentile of the time from the write of a record to the acknowledgement of its last output.",
        "s",
        {"{{stage}}": f"histogram_quantile(0.99, sum by (le, stage) (rate(neardup_stage_seconds_bucket{RATE})))"},
    ),
    Panel(
        "Bytes",
        "Bytes per second of all pages with a verdict, and of duplicates.",
        "Bps",
        {
            "pages": f"sum(rate(neardup_page_bytes_total{RATE}))",
            "duplicates": f"sum(rate(neardup_duplicate_bytes_total{RATE}))",
        },
    ),
    Panel(
        "Bytes saved",
        "Share of duplicates in all bytes so far.",
        "percentunit",
        {"saved": "sum(neardup_duplicate_bytes_total) / (sum(neardup_page_bytes_total) > 0)"},
    ),
    RECALL,
    Panel(
        "Host with most duplicates",
        "Highest share of duplicates of a host with many recent pages, without recrawls. Near 1, all its pages are "
        "dropped. The log names the host.",
        "percentunit",
        {"worst host": "max(neardup_host_duplicate_ratio)"},
    ),
    Panel(
        "Workers",
        "1: the worker answers Prometheus; 0: it does not.",
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
        "Workers by version and plan. Workers with different plans reject each other's messages.",
        "none",
        {"{{version}} {{plan}}": "count by (version, plan) (neardup_build_info)"},
    ),
    Panel(
        "Age of the oldest checkpoint",
        "Oldest checkpoint per stage. It also grows while a stage is idle.",
        "s",
        {"{{stage}}": "max by (stage) (time() - neardup_checkpoint_timestamp_seconds)"},
    ),
]
