"""Panels of the overview: first the symptoms that users notice, then the causes that operators look for."""

from deploy.grafana.panel import RATE, Panel, quantiles, stat

TO_VERDICT = quantiles(
    "Time from page to verdict",
    "Time from the timestamp of a page to its first verdict. It is high during a rebuild, and if a crawler sets old "
    "timestamps.",
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
        "99th percentile of the time from the timestamp of a page to its first verdict, over the last minutes.",
        "s",
        f"histogram_quantile(0.99, sum by (le) (rate(neardup_page_to_verdict_seconds_bucket{RATE})))",
    ),
    stat("Lag", "Number of records that are not yet processed, over all stages.", "short", "sum(neardup_lag_records)"),
    stat(
        "Alerts",
        "Number of alerts that are firing. The runbook has a section for each alert.",
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
        "Number of dead letters in the last hour by reason. Their pages have no verdict.",
        "short",
        {"{{stage}} {{reason}}": "sum by (stage, reason) (increase(neardup_dead_letters_total[1h])) > 0"},
    ),
    Panel(
        "Lag by stage",
        "Number of records that are not yet processed, per stage.",
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
        "Bytes per second of all pages with a verdict, and of the duplicates among them.",
        "Bps",
        {
            "pages": f"sum(rate(neardup_page_bytes_total{RATE}))",
            "duplicates": f"sum(rate(neardup_duplicate_bytes_total{RATE}))",
        },
    ),
    Panel(
        "Bytes saved",
        "Share of duplicates in the bytes of all pages since the workers started.",
        "percentunit",
        {"saved": "sum(neardup_duplicate_bytes_total) / (sum(neardup_page_bytes_total) > 0)"},
    ),
    RECALL,
    Panel(
        "Host with most duplicates",
        "Highest share of duplicates of a host with many recent pages, without recrawls. Near 1, nearly all pages of "
        "the host are duplicates. The log names the host.",
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
        "Number of partitions with lag and no progress. A worker with such a partition is not ready.",
        "none",
        {"{{stage}}": "sum by (stage) (neardup_stuck_partitions)"},
    ),
    Panel(
        "Plans",
        "Number of workers by version and plan. Workers with different plans reject each other's messages.",
        "none",
        {"{{version}} {{plan}}": "count by (version, plan) (neardup_build_info)"},
    ),
    Panel(
        "Age of the oldest checkpoint",
        "Age of the oldest checkpoint per stage. It also grows while a stage is idle.",
        "s",
        {"{{stage}}": "max by (stage) (time() - neardup_checkpoint_timestamp_seconds)"},
    ),
]
