"""A panel, and how those of all dashboards ask Prometheus."""

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
