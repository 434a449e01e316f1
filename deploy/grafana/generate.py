"""Writes the Grafana dashboards from the panels in `panels`.

Usage: `python -m deploy.grafana.generate` writes `dashboards/*.json`.
"""

import json
from pathlib import Path
from typing import Any

from deploy.grafana.panel import Panel
from deploy.grafana.panels import ALL

DASHBOARDS = Path(__file__).with_name("dashboards")
SOURCE = {"type": "prometheus", "uid": "prometheus"}


def dashboard(name: str) -> dict[str, Any]:
    """Return a dashboard in the format of Grafana."""
    title, panels = ALL[name]
    places = _places(panels)
    return {
        "uid": f"neardup-{name}",
        "title": title,
        "tags": ["neardup"],
        "schemaVersion": 39,
        "editable": False,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "timezone": "browser",
        "links": [
            {"title": "neardup", "type": "dashboards", "tags": ["neardup"], "asDropdown": False, "keepTime": True}
        ],
        "panels": [
            _panel(number, each, place) for number, (each, place) in enumerate(zip(panels, places, strict=True), 1)
        ],
    }


def _places(panels: list[Panel]) -> list[dict[str, int]]:
    """Place panels from left to right: four numbers or two charts per row of 24 columns."""
    places = []
    x = y = height = 0
    for each in panels:
        width, own_height = (6, 4) if each.is_stat else (12, 8)
        if x + width > 24 or own_height != height:
            x, y, height = 0, y + height, own_height
        places.append({"x": x, "y": y, "w": width, "h": own_height})
        x += width
    return places


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    options: dict[str, Any] = {"reduceOptions": {"calcs": ["lastNotNull"]}}
    if panel.is_alarm:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": 1}]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
        options["colorMode"] = "background"
    if not panel.is_stat:
        defaults["custom"] = {"fillOpacity": 10, "stacking": {"mode": "normal" if panel.stacked else "none"}}
        options = {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    return {
        "id": number,
        "type": "stat" if panel.is_stat else "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": SOURCE, "expr": query, "legendFormat": legend}
            for at, (legend, query) in enumerate(panel.queries.items())
        ],
        "options": options,
    }


def written(name: str) -> str:
    """Return the content of the file of a dashboard."""
    return json.dumps(dashboard(name), indent=2) + "\n"


if __name__ == "__main__":
    for each in ALL:
        (DASHBOARDS / f"{each}.json").write_text(written(each))
