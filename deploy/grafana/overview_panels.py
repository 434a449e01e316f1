"""What the overview shows: what a user would notice first, then what an operator looks for."""

from deploy.grafana.panel import RATE, Panel, quantiles, stat

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
