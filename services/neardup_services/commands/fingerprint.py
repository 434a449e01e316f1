"""`neardup fingerprint`: prints the signatures of pages."""

import json
from dataclasses import replace

import click

from neardup.errors import NeardupError
from neardup.settings import Settings
from neardup.signatures.signature import Signature, SignatureOptions, Signatures
from neardup_services.commands._shared import read_page


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line, with every signature.")
@click.option("--main-content", is_flag=True, help="Use the main content only, without navigation.")
@click.option("--charset", help="Charset as in the Content-Type header. Default: detected.")
def fingerprint(files: tuple[str, ...], as_json: bool, main_content: bool, charset: str | None) -> None:
    """Print the signatures of pages in files.

    The signatures of each FILE (- for standard input) are its fingerprint, its checksums and its sketches. Files that
    end in .txt or .md are text, all others are HTML.

    \b
    Example:
      neardup fingerprint a.html b.html
    """
    settings = Settings.load()
    signatures = Signatures(SignatureOptions.of(replace(settings, main_content=main_content or settings.main_content)))
    if not as_json:
        click.echo(f"signature version {signatures.version}")
    for name in files:
        try:
            signature = signatures.of(read_page(name, charset))
        except NeardupError as error:
            raise click.ClickException(f"{name}: {error}") from error
        if as_json:
            click.echo(json.dumps({"file": name, "signature_version": signatures.version, **_fields(signature)}))
        else:
            click.echo(_line(name, signature))


def _line(name: str, signature: Signature) -> str:
    if signature.fingerprint is None or signature.sketches is None:
        return f"{'-' * 16}  {signature.tokens:>7} tokens  {name}  (skipped: {signature.skipped})"
    shown = (
        f"{signature.fingerprint.value:016x}  {signature.tokens:>7} tokens  {signature.sketches.shingles:>7} shingles"
    )
    cut = f"  (cut at the limit of {', '.join(signature.cut)})" if signature.cut else ""
    return f"{shown}  {name}{cut}"


def _fields(signature: Signature) -> dict[str, object]:
    fields: dict[str, object] = {
        "skipped": signature.skipped,
        "cut": list(signature.cut),
        "tokens": signature.tokens,
        "checksums": {
            "content": signature.checksums.content.hex(),
            "tokens": signature.checksums.tokens.hex(),
            "shingles": signature.checksums.shingles.hex(),
        },
    }
    if signature.fingerprint is not None and signature.sketches is not None:
        sketches = signature.sketches
        fields |= {
            "fingerprint": f"{signature.fingerprint.value:016x}",
            "weights": signature.fingerprint.weights.tolist(),
            "shingles": sketches.shingles,
            "mips": sketches.mips.tolist(),
            "bands": [f"{key:016x}" for key in sketches.bands.tolist()],
            "filter": [f"{key:016x}" for key in sketches.filter.tolist()],
            "sample": {
                "modulus": 2**sketches.sample.i,
                "values": [f"{v:016x}" for v in sketches.sample.values.tolist()],
            },
            "smallest": [f"{value:016x}" for value in sketches.smallest.tolist()],
            "super_shingles": [f"{value:016x}" for value in sketches.supers.tolist()],
            "spots": sketches.spots.size,
        }
    return fields
