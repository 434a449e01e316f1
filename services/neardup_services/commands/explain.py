"""`neardup explain`: explains why two pages are, or are not, near-duplicates."""

import json
from collections.abc import Iterator
from dataclasses import replace

import click

from neardup.errors import NeardupError
from neardup.matching.explain import Explanation, Side
from neardup.matching.explain import explain as explain_pages
from neardup.matching.rule import Thresholds
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions, Signatures
from neardup_services.commands._shared import read_page

_SHOWN_WORDS = 12


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--main-content", is_flag=True, help="Use the main content only, without navigation.")
@click.option("--hamming", type=int, help="Maximum number of differing bits. Default: NEARDUP_HAMMING.")
@click.option(
    "--resemblance", type=float, help="Minimum resemblance of a near-duplicate. Default: NEARDUP_NEAR_RESEMBLANCE."
)
@click.option("--containment", type=float, help="Minimum containment of a contained page. Default: NEARDUP_CONTAINED.")
def explain(
    a: str,
    b: str,
    as_json: bool,
    main_content: bool,
    hamming: int | None,
    resemblance: float | None,
    containment: float | None,
) -> None:
    """Explain why two pages are, or are not, near-duplicates.

    Compares the pages in the files A and B (- for standard input) as if A had been crawled first. Prints the verdict on
    B and its reasons, the changes of settings that would reverse it, all measures of similarity, and the words that
    differ.

    \b
    Example:
      neardup explain a.html b.html
    """
    if a == b == "-":
        raise click.UsageError("expected at most one page on standard input, got two: name a file for A or B")
    settings = Settings.load()
    signatures = Signatures(SignatureOptions.of(replace(settings, main_content=main_content or settings.main_content)))
    set_ = Thresholds.of(settings)
    thresholds = Thresholds(
        set_.resemblance if resemblance is None else resemblance,
        set_.containment if containment is None else containment,
    )
    k = settings.hamming if hamming is None else hamming
    try:
        found = explain_pages(signatures, read_page(a), read_page(b), thresholds, k=k)
    except NeardupError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(found.as_dict(), ensure_ascii=False))
    else:
        click.echo("\n".join(_lines(found)))


def _lines(found: Explanation) -> Iterator[str]:
    relation = f" ({found.relation})" if found.relation else ""
    yield f"b is {found.verdict}{relation}"
    for reason in found.because:
        yield f"  {reason}"
    yield "what would change it"
    for change in found.would_change:
        yield f"  {change}"
    yield ""
    yield from _side("a", found.a)
    yield from _side("b", found.b)
    yield ""
    yield f"{'':24}{'exact':>8}{'sketch':>8}"
    yield _figures("resemblance", found.resemblance, found.resemblance_by_mips)
    yield _figures("  by sample (V_i)", None, found.resemblance_by_sample)
    yield _figures("  of spot signatures", found.resemblance_of_spots, None)
    yield _figures("containment of a in b", found.containment_a_in_b, found.containment_a_in_b_by_sample)
    yield _figures("containment of b in a", found.containment_b_in_a, found.containment_b_in_a_by_sample)
    if found.hamming is not None:
        yield ""
        yield f"bands shared: {found.shared_bands}, groups: {found.shared_groups}; bits that differ: {found.hamming}"
        for bit in found.bits:
            yield f"  bit {bit.bit:>3}: votes {bit.a:>+7} and {bit.b:>+7}; {bit.share:.0%} of the strongest vote"
    yield ""
    for span in found.spans:
        mark = {"both": " ", "a": "-", "b": "+"}[span.where]
        yield f"{mark} {_shortened(span.words)}"


def _side(label: str, side: Side) -> Iterator[str]:
    shown = "-" * 16 if side.fingerprint is None else f"{side.fingerprint:016x}"
    notes = [f"skipped: {side.skipped}"] if side.skipped else []
    notes += [f"cut at the limit of {name}" for name in side.cut]
    yield (
        f"{label}  {shown}  {len(side.tokens)} tokens  {side.features} features  {side.shingles} shingles  {side.name}"
        + (f"  ({'; '.join(notes)})" if notes else "")
    )
    yield f"   {_shortened(side.tokens)}"


def _figures(label: str, exact: float | None, sketch: float | None) -> str:
    shown = [f"{value:8.3f}" if value is not None else f"{'':8}" for value in (exact, sketch)]
    return f"{label:24}{''.join(shown)}".rstrip()


def _shortened(words: list[str]) -> str:
    if len(words) <= _SHOWN_WORDS:
        return " ".join(words)
    half = _SHOWN_WORDS // 2
    return f"{' '.join(words[:half])} … {len(words) - 2 * half} words … {' '.join(words[-half:])}"
