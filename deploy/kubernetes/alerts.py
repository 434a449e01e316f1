"""Prints the alert rules as a resource of the Prometheus operator.

Usage: `python -m deploy.kubernetes.alerts | kubectl apply --namespace neardup --filename -`
"""

import json
from pathlib import Path
from typing import Any

import yaml

RULES = Path(__file__).parents[1] / "prometheus" / "rules.yml"


def prometheus_rule() -> dict[str, Any]:
    """Return the rules as a PrometheusRule."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "neardup"},
        "spec": yaml.safe_load(RULES.read_text()),
    }


if __name__ == "__main__":
    print(json.dumps(prometheus_rule(), indent=2))
