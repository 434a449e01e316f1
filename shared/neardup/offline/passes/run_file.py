"""The file that records the last run in a results directory and its options."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Final

import xxhash

from neardup.errors import CorruptState, WrongState
from neardup.offline.corpus.columns import Manifest
from neardup.offline.options import Options
from neardup.offline.passes.phases import RunKey
from neardup.util.atomic_file import write_text

FILE: Final = "run.json"
VERSION: Final = 1
_CHANGEABLE: Final = ("representative", "large_cluster", "memory_bytes")
"""Options that do not affect the state kept between runs."""


def load(directory: Path, options: Options) -> RunKey | None:
    """Return the last run that was started, None without one. Raises StateError if it had different options."""
    path = directory / FILE
    if not path.exists():
        return None
    try:
        body = json.loads(path.read_text())
        version, made_with, run = body["version"], body["options"], RunKey(**body["run"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CorruptState(f"{path}: expected the last run, got: {error!r}; run again with --full") from error
    if version != VERSION:
        raise WrongState(f"{path}: expected version {VERSION}, got {version}; run again with --full")
    requested = _lasting_options(options)
    changed = [name for name in requested if requested[name] != made_with.get(name)]
    if changed:
        differences = "; ".join(f"{name}: expected {made_with.get(name)}, got {requested[name]}" for name in changed)
        raise WrongState(
            f"{path}: expected the options of the last run, got others: {differences}; use the expected options, "
            "another directory, or --full"
        )
    return run


def begin(directory: Path, options: Options, run: RunKey) -> None:
    """Record a run as the last one."""
    body = {"version": VERSION, "options": _lasting_options(options), "run": run._asdict()}
    write_text(directory / FILE, json.dumps(body, indent=1))


def next_run(before: RunKey | None, manifest: Manifest) -> RunKey:
    """Return the run over the present column store, or `before` if there are no new rows.

    Raises WrongState if rows were lost.
    """
    files = _digest(manifest, len(manifest.files))
    if before is None:
        return RunKey(0, manifest.rows, files)
    # Row numbers stay valid as long as the imported files begin with the same files.
    if before.files != _digest(manifest, int(before.files.partition("-")[0])):
        raise WrongState(
            f"expected the {before.rows} documents of the last run with the same row numbers, got {manifest.rows} that "
            "were imported again: run again with --full"
        )
    return before if manifest.rows == before.rows else RunKey(before.rows, manifest.rows, files)


def _digest(manifest: Manifest, count: int) -> str:
    return f"{count}-{xxhash.xxh3_64_hexdigest(json.dumps(manifest.files[:count]).encode())}"


def _lasting_options(options: Options) -> dict[str, object]:
    """Return the options that affect the state kept between runs, as JSON represents them."""
    fields = {name: value for name, value in asdict(options).items() if name not in _CHANGEABLE}
    lasting: dict[str, object] = json.loads(json.dumps(fields))
    return lasting
