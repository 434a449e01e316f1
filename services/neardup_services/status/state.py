"""The content of a state directory, read without changing or loading it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neardup.embedded.embedded import FILE
from neardup.errors import CorruptState, InputError
from neardup.index import snapshot
from neardup.index.plan.plan import Plan
from neardup.offline.corpus.corpus import Corpus
from neardup.offline.passes.recluster import RESULTS
from neardup.offline.report.files import REPORT
from neardup.stream.aggregator.directory import documents_in


@dataclass(frozen=True, slots=True)
class SliceState:
    """The snapshot of a shard partition."""

    partition: str
    offset: int
    keys: int | None
    bytes: int


@dataclass(frozen=True, slots=True)
class OwnerState:
    """The store of an aggregator partition."""

    partition: str
    documents: int | None
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastPass:
    """The last offline pass. `ended` is in seconds since the epoch."""

    documents: int
    clusters: int
    seconds: float
    ended: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StateView:
    """The content of a state directory. `pages`, `runs` and `clean` are None for the state of a worker on Kafka."""

    pages: int | None
    runs: int | None
    clean: bool | None
    plans: list[str]
    signature_versions: list[str]
    slices: list[SliceState]
    owners: list[OwnerState]
    corpus: str
    corpus_files: int
    corpus_documents: int
    last_pass: LastPass | None


def read_state(state: Path, corpus_elsewhere: str = "") -> StateView:
    """Read a state directory. Raises InputError if the directory holds no state, StateError if a part is unreadable.

    `corpus_elsewhere` is the address of the corpus of workers on Kafka, if it is not in the state directory. An
    embedded run always has its own corpus there.
    """
    embedded = _embedded(state / FILE)
    snapshots = sorted(state.glob("*/slice"), key=lambda path: _number(path.parent.name))
    stores = sorted(state.glob("*/store"), key=lambda path: _number(path.parent.name))
    address = str(state / "corpus") if embedded or not corpus_elsewhere else corpus_elsewhere
    corpus = Corpus(address)
    files = corpus.files()
    last_pass = _last_pass(state / RESULTS / REPORT)
    if not state.is_dir() or not (embedded or snapshots or stores or files or last_pass):
        raise InputError(f"{state}: expected a state directory, with {FILE} or the state of partitions, got neither")
    abouts = {path: snapshot.read_about(path) for path in snapshots}
    plans = {Plan.from_json(about["plan"], str(path)).digest for path, about in abouts.items()}
    signatures = {about["signature_version"] for about in abouts.values()} | {
        corpus.signature_version(file) for file in files[-1:]
    }
    return StateView(
        pages=embedded.get("pages"),
        runs=embedded.get("life"),
        clean=embedded.get("clean"),
        plans=sorted(plans | ({embedded["plan"]} if embedded else set())),
        signature_versions=sorted(signatures),
        slices=[
            SliceState(path.parent.name, about["offset"], about.get("keys"), path.stat().st_size)
            for path, about in abouts.items()
        ],
        owners=[OwnerState(path.parent.name, documents_in(path.parent), _size(path)) for path in stores],
        corpus=address,
        corpus_files=len(files),
        corpus_documents=sum(corpus.documents(file) for file in files),
        last_pass=last_pass,
    )


def _embedded(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    body = _json(path)
    if not isinstance(body.get("plan"), str):
        raise CorruptState(
            f"{path}: expected the progress of an embedded run with its plan, got none; restore the file from a backup"
        )
    return body


def _last_pass(path: Path) -> LastPass | None:
    if not path.exists():
        return None
    body = _json(path)
    try:
        return LastPass(
            documents=int(body["documents"]),
            clusters=int(body["clusters"]),
            seconds=float(body["seconds"]),
            ended=path.stat().st_mtime,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptState(f"{path}: expected the report of an offline pass: {error!r}") from error


def _json(path: Path) -> dict[str, Any]:
    try:
        body = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CorruptState(f"{path}: expected a JSON object: {error}") from error
    if not isinstance(body, dict):
        raise CorruptState(f"{path}: expected a JSON object, got {type(body).__name__}")
    return body


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _number(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("-")
    return topic, int(number) if number.isdigit() else 0
