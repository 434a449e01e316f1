"""`neardup status`: shows the state of a deployment or of a state directory."""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table as Grid

import neardup
from neardup.deployment.deployment import SERVICES, Deployment, group_of
from neardup.deployment.topics import topic_specs
from neardup.log.cluster import ClusterView, MemberView
from neardup.log.kafka import look as look_at_cluster
from neardup.settings import Settings
from neardup.util.formatting import format_bytes, format_seconds
from neardup_services.status import state as state_status
from neardup_services.status import worker as worker_status
from neardup_services.status.state import StateView
from neardup_services.status.worker import WorkerView

_MISSING: Final = "missing"


@click.command()
@click.option("--state", type=click.Path(path_type=Path), help="Show this state directory, without a broker.")
@click.option(
    "--worker", "workers", multiple=True, help="Address of a worker to query, http://host:port; can be repeated."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def status(state: Path | None, workers: tuple[str, ...], as_json: bool) -> None:
    """Show the state of a deployment or of a state directory.

    For a deployment: topics, workers and lag. The command changes nothing.

    Exit code 1: a topic is missing, a service other than canary has no worker, or a worker given by --worker is not
    ready.

    \b
    Example:
      neardup status --worker http://127.0.0.1:6066
    """
    if state is not None:
        view = state_status.look(state, Settings.load().corpus)
        if as_json:
            click.echo(json.dumps({"version": neardup.__version__, **asdict(view)}))
        else:
            _print_state(state, view)
        return
    settings = Settings.load()
    deployment = Deployment(settings)
    groups = {name: group_of(name, settings) for name in SERVICES}
    wanted = {spec.name: spec.partitions for spec in topic_specs(settings)}
    cluster = asyncio.run(look_at_cluster(settings, list(wanted), list(groups.values())))
    asked = worker_status.look(workers)
    topics = [_topic(cluster, name, partitions) for name, partitions in wanted.items()]
    services = [
        _service(cluster, name, spec.topic(deployment.topics), groups[name], settings.prefix)
        for name, spec in SERVICES.items()
    ]
    if as_json:
        about = {"version": neardup.__version__, "plan": deployment.plan.digest}
        about["signature_version"] = deployment.plan.signature_version
        body = {**about, "topics": topics, "services": services, "workers": [asdict(each) for each in asked]}
        click.echo(json.dumps(body))
    else:
        _print_deployment(topics, services, asked)
    is_whole = all(each["state"] != _MISSING for each in topics) and all(
        each["members"] for each in services if SERVICES[each["service"]].is_needed
    )
    if not is_whole or not all(each.ready for each in asked):
        sys.exit(1)


def _topic(cluster: ClusterView, name: str, partitions: int) -> dict[str, Any]:
    found = cluster.topics.get(name)
    if found is None:
        return {"topic": name, "state": _MISSING, "partitions": 0, "records": 0}
    agrees = len(found.bounds) == partitions
    state = "exists" if agrees else f"expected {partitions} partitions"
    return {"topic": name, "state": state, "partitions": len(found.bounds), "records": found.records}


def _service(cluster: ClusterView, name: str, topic: str, group: str, prefix: str) -> dict[str, Any]:
    found, read = cluster.groups[group], cluster.topics.get(topic)
    lag = {} if read is None else {each.partition: count for each, count in found.lag(read).items()}
    return {
        "service": name,
        "reads": topic,
        "state": found.state,
        "members": [{**asdict(each), "instance": _instance(each, prefix)} for each in found.members],
        "lag": sum(lag.values()),
        "lag_by_partition": lag,
    }


def _instance(member: MemberView, prefix: str) -> str | None:
    """The fixed name of a static member; None for a dynamic one."""
    return member.client.removeprefix(f"{prefix}-") if member.client.startswith(f"{prefix}-") else None


def _print_deployment(
    topics: Sequence[dict[str, Any]], services: Sequence[dict[str, Any]], asked: Sequence[WorkerView]
) -> None:
    rows: list[tuple[Any, ...]] = [
        (each["topic"], each["partitions"], each["records"], each["state"]) for each in topics
    ]
    _print(("topic", "partitions", "records", "state"), rows)
    rows = []
    for each in services:
        worst = max(each["lag_by_partition"].items(), key=lambda pair: pair[1], default=(0, 0))
        fixed = [member["instance"] for member in each["members"] if member["instance"]]
        most = f"partition {worst[0]}: {worst[1]:,}" if worst[1] else "-"
        rows.append(
            (each["service"], each["state"] or "-", len(each["members"]), ", ".join(fixed) or "-", each["lag"], most)
        )
    _print(("service", "group", "workers", "fixed names", "lag after commit", "most of it"), rows)
    if asked:
        _print(
            ("worker", "service", "ready", "partitions", "records/s", "lag", "saved", "memory", "slices", "documents"),
            [_worker_row(each) for each in asked],
        )


def _worker_row(each: WorkerView) -> tuple[Any, ...]:
    saved = "-" if each.checkpoint_age_seconds is None else f"{format_seconds(each.checkpoint_age_seconds)} ago"
    slices = f"{each.slice_keys:,} keys, {format_bytes(each.slice_bytes)}" if each.slice_keys else "-"
    return (
        each.url, each.stage or "-", "yes" if each.ready else each.reason, each.partitions,
        f"{each.records_per_second:,.0f}", each.lag, saved, format_bytes(each.memory_bytes), slices,
        each.documents or "-",
    )  # fmt: skip


def _print_state(path: Path, view: StateView) -> None:
    if view.pages is not None:
        how = "saved" if view.clean else "cut off: the next run goes on from here"
        click.echo(f"{path}: {view.pages:,} pages in {view.runs} {'run' if view.runs == 1 else 'runs'}, {how}")
    click.echo(f"plan {', '.join(view.plans) or '-'}; signatures {', '.join(view.signature_versions) or '-'}")
    rows: list[tuple[Any, ...]] = [
        (each.partition, "slice", "-" if each.keys is None else each.keys, format_bytes(each.bytes))
        for each in view.slices
    ]
    rows += [
        (each.partition, "directory", "-" if each.documents is None else each.documents, format_bytes(each.bytes))
        for each in view.owners
    ]
    corpus = "corpus" if view.corpus == str(path / "corpus") else view.corpus
    rows.append((corpus, "files" if view.corpus_files != 1 else "file", view.corpus_files, "-"))
    rows.append(("", "documents", view.corpus_documents, "-"))
    _print(("partition", "holds", "entries", "bytes"), rows)
    if view.last_pass is None:
        click.echo("no offline pass yet")
    else:
        ago = time.time() - view.last_pass["ended"]
        click.echo(
            f"last offline pass {format_seconds(ago)} ago: {view.last_pass['documents']:,} documents, "
            f"{view.last_pass['clusters']:,} clusters, {format_seconds(view.last_pass['seconds'])}"
        )


def _print(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    grid = Grid(box=None, pad_edge=False)
    for number, head in enumerate(heads):
        is_number = bool(rows) and all(isinstance(row[number], int | float) or row[number] == "-" for row in rows)
        grid.add_column(head, justify="right" if is_number else "left")
    for row in rows:
        grid.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    Console(width=None if sys.stdout.isatty() else 180).print(grid, "")
