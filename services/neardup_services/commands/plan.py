"""`neardup plan`: what each way to find candidates would cost, side by side."""

import json
import re
import sys
from dataclasses import asdict
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table as Grid

from neardup.index.costs import Constants, Option, compare, measure
from neardup.index.plan.design import MAX_K

_UNITS: Final = {"": 1, "b": 1, **{f"{c}ib": 2 ** (10 * n) for n, c in enumerate("kmgtp", 1)}}
_UNITS_10: Final = {f"{c}b": 10 ** (3 * n) for n, c in enumerate("kmgtp", 1)}


class Size(click.ParamType):
    """Bytes with a unit: 32GiB, 500MB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-z]*)\s*", str(value).lower())
        units = _UNITS | _UNITS_10
        if found is None or found[2] not in units:
            self.fail(f"expected a size such as 32GiB or 500MB, got {value!r}", param, ctx)
        size = int(float(found[1]) * units[found[2]])
        if size < 2**20:
            self.fail(f"expected at least 1MiB, got {value!r}", param, ctx)
        return size


@click.command()
@click.option("--pages", required=True, type=click.FloatRange(1e3, 1e15), help="how many pages to remember, e.g. 8e9")
@click.option(
    "--k", default=3, show_default=True, type=click.IntRange(1, MAX_K), help="bits that near-duplicates differ in"
)
@click.option("--memory-per-shard", default="32GiB", show_default=True, type=Size(), help="a slice takes at most this")
@click.option("--memory-per-machine", default="256GiB", show_default=True, type=Size(), help="for tables")
@click.option("--most-tables", default=40, show_default=True, type=click.IntRange(1, 200), help="of the exact search")
@click.option("--json", "as_json", is_flag=True, help="one JSON object instead of a table")
def plan(pages: float, k: int, memory_per_shard: int, memory_per_machine: int, most_tables: int, as_json: bool) -> None:
    """Compare designs of the fingerprint tables: memory, shards, machines, messages and time per page.

    The time is computed from what this machine does, measured on the spot; bytes per page from runs that are built.
    """
    constants = measure()
    options = compare(
        pages,
        k=k,
        memory_per_shard=memory_per_shard,
        memory_per_machine=memory_per_machine,
        constants=constants,
        most_tables=most_tables,
    )
    if as_json:
        body = {"pages": pages, "k": k, "constants": asdict(constants), "options": [o.as_dict() for o in options]}
        click.echo(json.dumps(body))
    else:
        _print(pages, k, constants, options)


def _print(pages: float, k: int, constants: Constants, options: list[Option]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(
        f"{pages:,.0f} pages, k = {k}. This machine: read {constants.read_ns:.1f} ns, "
        f"compare {constants.scan_ns:.2f} ns, permute {constants.permute_ns:.1f} ns, flip {constants.flip_ns:.0f} ns"
    )
    heads = ("search", "tables", "p_i", "lookups", "candidates", "bytes/page", "packed", "shards", "packed", "machines",
             "packed", "messages/page", "µs/page")  # fmt: skip
    grid = Grid(box=None, pad_edge=False)
    for number, head in enumerate(heads):
        grid.add_column(head, justify="left" if number == 0 else "right")
    for each in options:
        leading = f"{each.least_leading}" if each.least_leading == each.most_leading else (
            f"{each.least_leading}-{each.most_leading}")  # fmt: skip
        grid.add_row(
            each.search, f"{each.tables}", leading, f"{each.lookups}", f"{each.candidates_per_probe:,.3g}",
            f"{each.bytes_per_page:.1f}", f"{each.bytes_per_page_compressed:.1f}", f"{each.shards}",
            f"{each.shards_compressed}", f"{each.machines}", f"{each.machines_compressed}",
            f"{each.messages_per_page:.1f}", f"{each.microseconds_per_page:,.2f}",
        )  # fmt: skip
    console.print(grid)
