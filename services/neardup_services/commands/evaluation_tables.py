"""Tables of `neardup evaluate` that have one line for every method, preset or k."""

from collections.abc import Sequence

from rich.table import Table

from neardup.evaluation.preset_costs import PresetCost
from neardup.evaluation.psm_recall import PsmRecall
from neardup.evaluation.report import Evaluation
from neardup.evaluation.strata import BY_FILE


def methods_table(found: Evaluation) -> Table:
    """F1 of every method, its threshold by cross-validation: on all pairs, and of these on each file's."""
    judged = [(alone.name, alone.judged) for alone in found.alone if alone.judged is not None]
    files = [part for part in found.verdict.strata if part.startswith(BY_FILE)]
    table = _table(("F1", "all", *(part.removeprefix(BY_FILE) for part in files)))
    for name, each in (("verdict, as set", found.verdict), *judged):
        own = [each.strata[part].f1.value for part in files]
        interval = f"{each.total.f1.value:.3f} ({each.total.f1.low:.2f} to {each.total.f1.high:.2f})"
        table.add_row(name, interval, *(f"{value:.3f}" for value in own))
    return table


def presets_table(costs: Sequence[PresetCost]) -> Table:
    """A line a preset."""
    table = _table(
        ("preset", "probes", "bytes a page", "pages/s", "precision", "recall", "F1", "crawl precision", "crawl recall")
    )
    for each in costs:
        pairs = (each.pairs.precision, each.pairs.recall, each.pairs.f1)
        table.add_row(
            each.preset,
            f"{each.probes}",
            f"{each.bytes_per_page:.0f}",
            f"{each.pages_per_s:,.0f}",
            *(f"{figure.value:.3f}" for figure in pairs),
            *("-" if share is None else f"{share:.4f}" for share in (each.crawl_precision, each.crawl_recall)),
        )
    return table


def psm_table(recalls: Sequence[PsmRecall]) -> Table:
    """A line a k."""
    head = recalls[0]
    flips = f"recall of {head.flips} flips"
    table = _table(("k", "pairs", f"{flips}, fitted", f"{flips}, simulated", "flips for .95, fitted", "simulated"))
    for each in recalls:
        shares = (f"{each.fitted:.3f}", f"{each.simulated:.3f}")
        table.add_row(f"{each.k}", f"{each.pairs}", *shares, f"{each.fitted_flips}", f"{each.simulated_flips}")
    return table


def _table(heads: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number else "left")
    return table
