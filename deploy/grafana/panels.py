"""The panels of every dashboard.

Each dashboard begins with the symptoms that users of the service notice: traffic, latency, errors, saturation. The
panels of the particular service follow, and then those that every worker has.
"""

from deploy.grafana.overview_panels import OVERVIEW
from deploy.grafana.panel import Panel
from deploy.grafana.service_panels import AGGREGATOR, FEATURIZER, RECLUSTER, SHARDS
from deploy.grafana.worker_panels import sends, signals, worker


def service(stage: str, own: list[Panel], *, is_sender: bool = True) -> list[Panel]:
    """Return the panels of the dashboard of a service."""
    return [*signals(stage), *own, *(sends(stage) if is_sender else []), *worker(stage)]


ALL = {
    "overview": ("neardup: overview", OVERVIEW),
    "featurizer": ("neardup: featurizer", service("featurizer", FEATURIZER)),
    "shards": ("neardup: shards", service("shard", SHARDS)),
    "aggregator": ("neardup: aggregator", service("aggregator", AGGREGATOR)),
    "recluster": ("neardup: recluster", service("recluster", RECLUSTER, is_sender=False)),
}
