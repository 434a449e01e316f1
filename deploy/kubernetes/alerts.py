"""Prints the alert rules as the Prometheus operator takes them.

python -m deploy.kubernetes.alerts | kubectl apply --namespace neardup --filename -
"""

import json
from pathlib import Path
from typing import Any

import yaml

RULES = Path(__file__).parents[1] / "prometheus" / "rules.yml"


def prometheus_rule() -> dict[str, Any]:
    """The rules in the operator's clothes."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "neardup"},
        "spec": yaml.safe_load(RULES.read_text()),
    }


if __name__ == "__main__":
    print(json.dumps(prometheus_rule(), indent=2))
