"""`neardup plan`: compares the costs of designs of the fingerprint tables."""

import json
import re
from dataclasses import asdict
from typing import Any, Final

import click

from neardup.index.costs import Constants, Option, compare, measure
from neardup.index.plan.design import MAX_K
from neardup_services.commands._shared import make_table, output_console

_UNITS: Final = {"": 1, "b": 1, **{f"{c}ib": 2 ** (10 * n) for n, c in enumerate("kmgtp", 1)}}
_UNITS_10: Final = {f"{c}b": 10 ** (3 * n) for n, c in enumerate("kmgtp", 1)}


class Size(click.ParamType):
    """A size in bytes, written with a unit: 32GiB, 500MB."""

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
@click.option(
    "--pages", required=True, type=click.FloatRange(1e3, 1e15), help="Number of pages in the tables, such as 8e9."
)
@click.option(
    "--k",
    default=3,
    show_default=True,
    type=click.IntRange(1, MAX_K),
    help="Maximum number of bits in which the fingerprints of near-duplicates differ.",
)
@click.option(
    "--memory-per-shard",
    default="32GiB",
    show_default=True,
    type=Size(),
    help="Maximum size of a slice in memory, with a unit.",
)
@click.option(
    "--memory-per-machine",
    default="256GiB",
    show_default=True,
    type=Size(),
    help="Memory for tables per machine, with a unit.",
)
@click.option(
    "--most-tables",
    default=40,
    show_default=True,
    type=click.IntRange(1, 200),
    help="Maximum number of tables of the exact search.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def plan(pages: float, k: int, memory_per_shard: int, memory_per_machine: int, most_tables: int, as_json: bool) -> None:
    """Compare the costs of designs of the fingerprint tables.

    The costs are memory, shards, machines, messages and time per page. Times are computed from operations that the
    command measures on this machine, bytes per page from sorted runs that it builds.

    \b
    Example:
      neardup plan --pages 8e9 --memory-per-shard 64GiB
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
    console = output_console()
    console.print(
        f"{pages:,.0f} pages, k = {k}. This machine: read {constants.read_ns:.1f} ns, "
        f"compare {constants.scan_ns:.2f} ns, permute {constants.permute_ns:.1f} ns, flip {constants.flip_ns:.0f} ns"
    )
    heads = ("search", "tables", "p_i", "lookups", "candidates", "bytes/page", "packed", "shards", "packed", "machines",
             "packed", "messages/page", "µs/page")  # fmt: skip
    grid = make_table(*heads)
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
