"""A panel, and the queries that several dashboards share."""

from dataclasses import dataclass

RATE = "[$__rate_interval]"
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True)
class Panel:
    """A panel of a dashboard. `queries` maps legends to Prometheus queries; an alarm is red unless it is 0."""

    title: str
    description: str
    unit: str
    queries: dict[str, str]
    is_stat: bool = False
    is_alarm: bool = False
    stacked: bool = False


def stat(title: str, description: str, unit: str, query: str, *, is_alarm: bool = False) -> Panel:
    """Return a panel with a single number."""
    return Panel(title, description, unit, {"": query}, is_stat=True, is_alarm=is_alarm)


def quantiles(title: str, description: str, metric: str, stage: str | None = None) -> Panel:
    """Return a panel with three quantiles of a histogram in seconds, for one stage if `stage` is given."""
    chosen = f'{{stage="{stage}"}}' if stage else ""
    queries = {
        name: f"histogram_quantile({quantile}, sum by (le) (rate({metric}_bucket{chosen}{RATE})))"
        for name, quantile in QUANTILES.items()
    }
    return Panel(title, description, "s", queries)


def recall_of(source: str) -> dict[str, str]:
    """Return the queries for the estimated recall and its bounds, as the workers export them."""
    names = {"": "recall", ", at least": "recall_low", ", at most": "recall_high"}
    return {
        f"{{{{partition}}}}{bound}": f'max by (partition) (neardup_{name}_ratio{{source="{source}"}})'
        for bound, name in names.items()
    }
