"""`neardup status`: shows the state of a deployment or of a state directory."""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

import neardup
from neardup.settings import Settings
from neardup.util.formatting import format_bytes, format_seconds
from neardup_services.commands._shared import make_table, output_console
from neardup_services.status.deployment import DeploymentStatus, ServiceStatus, read_deployment
from neardup_services.status.state import StateView, read_state
from neardup_services.status.worker import WorkerView, query_workers

_Row = tuple[object, ...]


@click.command()
@click.option("--state", type=click.Path(path_type=Path), help="State directory to show instead of a deployment.")
@click.option(
    "--worker",
    "workers",
    multiple=True,
    help="Address of a worker to query, such as http://127.0.0.1:6066. Can be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def status(state: Path | None, workers: tuple[str, ...], as_json: bool) -> None:
    """Show the state of a deployment or of a state directory.

    Shows the topics, workers and lag of a deployment, or the content of a state directory (--state). The command
    changes nothing.

    Exit code 1: a topic is missing, a service other than canary has no worker, or a worker given by --worker is not
    ready.

    \b
    Example:
      neardup status --worker http://127.0.0.1:6066
    """
    if state is not None:
        view = read_state(state, Settings.load().corpus)
        if as_json:
            click.echo(json.dumps({"version": neardup.__version__, **asdict(view)}))
        else:
            _print_state(state, view)
        return
    found = asyncio.run(read_deployment(Settings.load()))
    queried = query_workers(workers)
    if as_json:
        click.echo(
            json.dumps({"version": neardup.__version__, **asdict(found), "workers": [asdict(each) for each in queried]})
        )
    else:
        _print_deployment(found, queried)
    if not found.is_complete or not all(each.ready for each in queried):
        sys.exit(1)


def _print_deployment(found: DeploymentStatus, workers: Sequence[WorkerView]) -> None:
    _print(
        ("topic", "partitions", "records", "state"),
        [(each.topic, each.partitions, each.records, each.state) for each in found.topics],
    )
    _print(
        ("service", "group", "workers", "fixed names", "lag after commit", "most of it"),
        [_service_row(each) for each in found.services],
    )
    if workers:
        _print(
            ("worker", "service", "ready", "partitions", "records/s", "lag", "saved", "memory", "slices", "documents"),
            [_worker_row(each) for each in workers],
        )


def _service_row(each: ServiceStatus) -> _Row:
    partition, largest = max(each.lag_by_partition.items(), key=lambda pair: pair[1], default=(0, 0))
    fixed = [member.instance for member in each.members if member.instance]
    most = f"partition {partition}: {largest:,}" if largest else "-"
    return each.service, each.state or "-", len(each.members), ", ".join(fixed) or "-", each.lag, most


def _worker_row(each: WorkerView) -> _Row:
    saved = "-" if each.checkpoint_age_seconds is None else f"{format_seconds(each.checkpoint_age_seconds)} ago"
    slices = f"{each.slice_keys:,} keys, {format_bytes(each.slice_bytes)}" if each.slice_keys else "-"
    return (
        each.url, each.stage or "-", "yes" if each.ready else each.reason, each.partitions,
        f"{each.records_per_second:,.0f}", each.lag, saved, format_bytes(each.memory_bytes), slices,
        each.documents or "-",
    )  # fmt: skip


def _print_state(path: Path, view: StateView) -> None:
    if view.pages is not None:
        how = "saved" if view.clean else "in use or interrupted: the next run resumes from here"
        click.echo(f"{path}: {view.pages:,} pages in {view.runs} {'run' if view.runs == 1 else 'runs'}, {how}")
    click.echo(f"plan {', '.join(view.plans) or '-'}; signatures {', '.join(view.signature_versions) or '-'}")
    rows: list[_Row] = [
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
        ago = time.time() - view.last_pass.ended
        click.echo(
            f"last offline pass {format_seconds(ago)} ago: {view.last_pass.documents:,} documents, "
            f"{view.last_pass.clusters:,} clusters, {format_seconds(view.last_pass.seconds)}"
        )


def _print(heads: Sequence[str], rows: Sequence[_Row]) -> None:
    table = make_table()
    for number, head in enumerate(heads):
        is_number = bool(rows) and all(isinstance(row[number], int | float) or row[number] == "-" for row in rows)
        table.add_column(head, justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    output_console(180).print(table, "")
