"""Settings: one frozen object, read once, from `NEARDUP_*` variables and an optional TOML file.

The environment wins over the file, the file over a preset, a preset over the defaults. The file is named by
`NEARDUP_SETTINGS` and has the same names in lower case, without the prefix. This is the only module that reads the
environment; everything else is handed a `Settings`.

A variable with the prefix that is no setting is never ignored silently: a misspelt setting is an error, anything else a
warning. Exempt are `NEARDUP_TEST_*`, which configure the test suite, and the variables that Kubernetes sets for a
Service whose name begins with `neardup-`.
"""

import logging
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Final

from neardup.errors import SettingsError
from neardup.unknown_variables import PREFIX, UnknownVariable, closest_name, find_unknown, is_misspelt

FILE_VARIABLE: Final = "NEARDUP_SETTINGS"
DEFAULT_PRESET: Final = "default"
PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    # With bands, fingerprints that differ in a few bits find next to nothing more: equal ones are enough.
    "fast": {"hamming": 0, "bands": "12x10"},
    DEFAULT_PRESET: {},
    # Finds nearly every pair that the rule would accept, and more that it turns down.
    "thorough": {"bands": "25x5"},
}
"""Named sets of settings, from cheap to thorough. `neardup evaluate --preset` measures the cost and recall of each."""
PAIR_SOURCES: Final = ("shingles", "supers", "bands", "spots", "hamming", "psm")


@dataclass(frozen=True, slots=True)
class Check:
    """How a value is read from text and what is allowed, in words that fit after 'expected'."""

    expected: str
    parse: Callable[[str], Any]
    allowed: Callable[[Any], bool] = lambda value: True


def _whole(low: int, high: int) -> Check:
    return Check(f"a whole number from {low} to {high}", int, lambda value: low <= value <= high)


def _seconds(low: float, high: float) -> Check:
    return Check(f"seconds from {low:g} to {high:g}", float, lambda value: low <= value <= high)


def _share() -> Check:
    return Check("a number from 0 to 1", float, lambda value: 0 <= value <= 1)


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


_YES_OR_NO: Final = Check("true or false", _boolean)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("+"))


def _choice(*options: str) -> Check:
    return Check("one of " + ", ".join(options), str, lambda value: value in options)


_BANDS: Final = re.compile(r"none|[1-9]\d{0,3}x[1-9]\d{0,3}")
_TEXT: Final = Check("some text", str, lambda value: value.isprintable())
_NAME: Final = Check(
    "letters, digits, dots, dashes and underscores, 1 to 100 of them",
    str,
    lambda value: re.fullmatch(r"[A-Za-z0-9._-]{1,100}", value) is not None,
)


def _path(text: str) -> Path:
    if not text:
        raise ValueError("Path('') would be the current directory")
    return Path(text)


_PATH: Final = Check("a path", _path)


def _setting(default: Any, check: Check, about: str, *, secret: bool = False) -> Any:
    return field(default=default, repr=not secret, metadata={"check": check, "about": about, "secret": secret})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be set. Construct with `Settings.load`; the fields are the documentation."""

    broker: str = _setting("127.0.0.1:9092", _TEXT, "Kafka bootstrap servers, host:port, comma-separated")
    security_protocol: str = _setting(
        "PLAINTEXT", _choice("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), "how to talk to the broker"
    )
    sasl_mechanism: str = _setting(
        "SCRAM-SHA-512", _choice("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), "SASL mechanism"
    )
    sasl_username: str = _setting("", _TEXT, "SASL user")
    sasl_password: str = _setting("", _TEXT, "SASL password", secret=True)
    tls_ca: str = _setting("", _TEXT, "PEM file with the broker's certificate authority")
    tls_cert: str = _setting("", _TEXT, "PEM file with this client's certificate")
    tls_key: str = _setting("", _TEXT, "PEM file with this client's key")
    tls_key_password: str = _setting("", _TEXT, "password of that key", secret=True)

    prefix: str = _setting("neardup", _NAME, "first part of every topic and group name")
    instance: str = _setting(
        "", Check("empty or a name", str, lambda v: v == "" or _NAME.allowed(v)),
        "name of this worker among its kind, fixed over restarts (Kafka's static membership); empty: none",
    )  # fmt: skip
    session_timeout_seconds: float = _setting(
        10.0, _seconds(1, 1800), "a silent worker loses its partitions after this"
    )
    request_timeout_seconds: float = _setting(
        120.0, _seconds(1, 3600), "an output not acknowledged by then stops the worker"
    )
    # Not lz4: aiokafka uses it at its slowest level, where it takes five times as long and saves less.
    compression: str = _setting("zstd", _choice("none", "gzip", "snappy", "lz4", "zstd"), "of messages")
    max_message_bytes: int = _setting(
        8 * 2**20, _whole(2**16, 15 * 2**20), "largest record on pages; dead-letters take a little more"
    )

    page_partitions: int = _setting(2, _whole(1, 10_000), "partitions of pages")
    owners: int = _setting(2, _whole(1, 10_000), "partitions of inbox: owners of fingerprints")
    verdict_partitions: int = _setting(2, _whole(1, 10_000), "partitions of verdicts, documents and clusters")
    generation: int = _setting(
        0, _whole(0, 10_000), "of probes and inbox: how often the deployment was resharded (neardup reshard)"
    )
    replication: int = _setting(1, _whole(1, 10), "copies of every topic")
    page_retention_hours: int = _setting(
        168, _whole(1, 1_000_000), "how long pages, verdicts and dead-letters are kept"
    )

    main_content: bool = _setting(False, _YES_OR_NO, "read only the main content of a page, no navigation")
    page_bytes: int = _setting(8 * 2**20, _whole(1, 2**30), "of a page, more are over the limit")
    page_nesting: int = _setting(512, _whole(1, 100_000), "open elements at once, more are over the limit")
    page_tokens: int = _setting(200_000, _whole(1, 2**30), "of a page, more are over the limit")
    over_limit: str = _setting("cut", _choice("cut", "reject"), "a page over a limit is cut, or goes to dead-letters")
    phrases: tuple[int, ...] = _setting(
        (1,),
        Check(
            "lengths of phrases from 1 to 8, as in 1 or 1+2",
            _numbers,
            lambda value: bool(value) and all(1 <= n <= 8 for n in value),
        ),
        "words in a feature of the fingerprint",
    )
    weighting: str = _setting(
        "presence", _choice("presence", "tf", "log-tf", "tf-idf"), "what a feature weighs in the fingerprint"
    )
    idf_table: str = _setting("", _TEXT, "file with the frequencies for tf-idf")
    drop_stop_words: bool = _setting(False, _YES_OR_NO, "leave stop words out of the features")
    stem: bool = _setting(False, _YES_OR_NO, "features are stems of words (Snowball)")
    language: str = _setting("detect", _NAME, "of stop words and stems, or detect")
    shingle_words: int = _setting(3, _whole(1, 64), "words in a shingle")

    hamming: int = _setting(3, _whole(0, 7), "k: bits in which fingerprints may differ for the tables to find them")
    search: str = _setting(
        "exact", _choice("exact", "probabilistic"), "of fingerprints: permuted tables, or one table and likely flips"
    )
    tables: int = _setting(10, _whole(1, 1000), "most permuted tables of the exact search")
    slice_bits: int = _setting(0, _whole(0, 16), "a table is cut into 2^this shard partitions")
    flip_model: str = _setting("", _TEXT, "file of the probabilistic search's flip model; empty: a simulated one")
    flips: int = _setting(24, _whole(1, 4096), "flips of the header that the probabilistic search tries")
    header_bits: int = _setting(20, _whole(1, 64), "header of the probabilistic search")
    bands: str = _setting(
        "18x7",
        Check("bands and values in each, as in 18x7, or none", str, lambda v: _BANDS.fullmatch(v) is not None),
        "bands of the sketch, whose keys have buckets, and how many values are in one",
    )
    spots: bool = _setting(False, _YES_OR_NO, "keep spot signatures in sketches, for the offline pass")
    band_slice_bits: int = _setting(1, _whole(0, 16), "the buckets of all bands are cut into 2^this shard partitions")
    codec: str = _setting("plain", _choice("plain", "elias-fano", "huffman"), "of the runs of a table")
    most_matches: int = _setting(1000, _whole(1, 10**6), "of a fingerprint in a table, the nearest are kept")
    common_bucket: int = _setting(1000, _whole(2, 10**6), "documents in a bucket from which on it is ignored")
    ttl_hours: float = _setting(
        0.0,
        Check("hours from 0 on", float, lambda value: value >= 0),
        "how long shards remember a fingerprint; 0: for ever",
    )
    near_resemblance: float = _setting(0.65, _share(), "pages that resemble each other this much are near-duplicates")
    contained: float = _setting(0.95, _share(), "a page is contained in another with this much of it")
    variants: int = _setting(8, _whole(1, 1000), "different pages with the same fingerprint that are kept to compare")
    candidates: int = _setting(1000, _whole(1, 10**5), "that a page is compared with, the nearest first")

    corpus: str = _setting("", _TEXT, "folder or fsspec address of the corpus; empty: `corpus` in the state directory")
    corpus_seconds: float = _setting(60.0, _seconds(0, 86_400), "longest wait of a document before it is in the corpus")
    recluster_seconds: float = _setting(
        3600.0, _seconds(1, 31_536_000), "between offline passes of the recluster service"
    )
    pair_sources: tuple[str, ...] = _setting(
        ("shingles", "hamming"),
        Check(
            f"one or more of {', '.join(PAIR_SOURCES)}, joined by +",
            lambda text: tuple(text.split("+")),
            lambda value: bool(value) and set(value) <= set(PAIR_SOURCES),
        ),
        "where the offline pass takes pairs of documents from",
    )
    common_shingle: int = _setting(1000, _whole(2, 10**6), "documents with a shingle from which on it is ignored")
    spot_resemblance: float = _setting(0.44, _share(), "of spot signatures, from which on pages are near-duplicates")
    cluster_rule: str = _setting(
        "representative",
        _choice("representative", "transitive"),
        "whether a document must resemble its cluster's first one, or any of it",
    )
    representative: str = _setting(
        "first", _choice("first", "longest", "shortest-url", "https"), "which document stands for its cluster"
    )
    large_cluster: int = _setting(10_000, _whole(2, 10**9), "documents in a cluster from which on there is a warning")
    offline_memory_mb: int = _setting(1024, _whole(16, 10**7), "that the offline pass may use for sorting")

    canary_share: float = _setting(0.001, _share(), "share of the pages that the canary service plants a near-copy of")
    shadow_share: float = _setting(
        0.01, _share(), "share of the settled documents that are compared with all recent ones, to see what was missed"
    )
    shadow_documents: int = _setting(4096, _whole(1, 10**6), "recent documents that they are compared with")
    host_pages: int = _setting(
        100, _whole(1, 10**6), "recent pages of a host from which on its share of duplicates is watched"
    )
    sample_seed: int = _setting(0, _whole(0, 2**62), "of the choice of pages and documents that are watched")

    state: Path = _setting(Path("state"), _PATH, "directory for the state of this worker's partitions")
    threads: int = _setting(0, _whole(0, 1024), "worker threads of a service; 0: one a core")
    processes: int = _setting(
        0, _whole(0, 1024), "that featurize many pages; 1: only the worker's own; 0: one a core, and 2 on Kafka"
    )
    poll_records: int = _setting(2000, _whole(1, 1_000_000), "most records handed to a stage at once")
    checkpoint_seconds: float = _setting(10.0, _seconds(0.01, 86_400), "longest time between checkpoints")
    checkpoint_records: int = _setting(200_000, _whole(1, 10**12), "most records between checkpoints of a partition")
    checkpoint_bytes: int = _setting(
        2 * 2**20, _whole(1, 10**12), "an owner with so many bytes of changes is saved before its time"
    )
    stop_seconds: float = _setting(
        20.0,
        _seconds(0.1, 3600),
        "longest wait for acknowledgements, and for the next step of a pass, when stopping or losing partitions",
    )
    stuck_seconds: float = _setting(
        60.0, _seconds(0.1, 86_400), "readiness fails when a partition with lag stands still this long"
    )

    verdict_format: str = _setting("json", _choice("json", "msgpack"), "of verdicts")
    web_host: str = _setting("127.0.0.1", _TEXT, "address of /metrics, /healthz, /readyz and, of recluster, /api")
    web_port: int = _setting(6066, _whole(1, 65_535), "port of the same")
    log_format: str = _setting("text", _choice("text", "json"), "of log lines")
    log_level: str = _setting("info", _choice("debug", "info", "warning", "error"), "least level logged")

    @classmethod
    def load(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        preset: str = DEFAULT_PRESET,
        other: Path | None = None,
        allow_unknown: bool = False,
        **overrides: Any,
    ) -> "Settings":
        """Read preset, file and environment, then apply overrides (already typed). Raises SettingsError.

        `other` is a settings file that a user names on the spot: it wins over the environment. Unknown variables raise
        if they look like a misspelt setting and are logged once otherwise; `allow_unknown` turns off both.
        """
        if preset not in PRESETS:
            raise SettingsError(f"preset: expected one of {', '.join(PRESETS)}, got {preset!r}")
        environ = os.environ if environ is None else environ
        if not allow_unknown:
            _report(unknown_variables(environ))
        read = {**_from_file(environ.get(FILE_VARIABLE)), **_from_environment(environ)}
        named = _from_file(None if other is None else str(other))
        return cls(**{**PRESETS[preset], **read, **named, **overrides})

    def __post_init__(self) -> None:
        for each in fields(self):
            _verify(variable_of(each.name), each.metadata, getattr(self, each.name))

    def describe(self) -> list[tuple[str, str, str]]:
        """(variable, value, meaning) of every setting; secrets are masked."""
        return [
            (variable_of(each.name), _shown(each.metadata, getattr(self, each.name)), each.metadata["about"])
            for each in fields(self)
        ]


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def unknown_variables(environ: Mapping[str, str] | None = None) -> list[UnknownVariable]:
    """Return the variables that seem to be meant for this program and are no settings, sorted by name."""
    environ = os.environ if environ is None else environ
    return find_unknown(environ, [variable_of(each.name) for each in fields(Settings)] + [FILE_VARIABLE])


def _report(unknown: list[UnknownVariable]) -> None:
    if misspelt := [str(each) for each in unknown if each.misspelt]:
        raise SettingsError("; ".join(misspelt))
    for each in unknown:
        _warn(str(each))


@cache
def _warn(message: str) -> None:
    """Log a warning, once per process."""
    logging.getLogger(__name__).warning(message)


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    known = {variable_of(each.name): each for each in fields(Settings)}
    values = {}
    for variable, text in environ.items():
        if variable in known:
            each = known[variable]
            values[each.name] = _parse(variable, each.metadata, text)
    return values


def _from_file(path: str | None) -> dict[str, Any]:
    if not path:
        return {}
    try:
        table = tomllib.loads(Path(path).read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{FILE_VARIABLE}: expected a TOML file, cannot read {path}: {error}") from error
    known = {each.name: each for each in fields(Settings)}
    values = {}
    for name, value in table.items():
        if name not in known:
            closest = closest_name(name, known)
            hint = f", did you mean {closest!r}?" if is_misspelt(name, closest) else ""
            raise SettingsError(f"{path}: no setting is called {name!r}{hint}; `neardup settings` lists them")
        text = "+".join(map(str, value)) if isinstance(value, list) else str(value)
        values[name] = _parse(f"{path}: {name}", known[name].metadata, text)
    return values


def _parse(where: str, metadata: Mapping[str, Any], text: str) -> Any:
    try:
        return metadata["check"].parse(text)
    except (ValueError, KeyError) as error:
        raise _wrong(where, metadata, text) from error


def _verify(where: str, metadata: Mapping[str, Any], value: Any) -> None:
    if not metadata["check"].allowed(value):
        raise _wrong(where, metadata, value)


def _wrong(where: str, metadata: Mapping[str, Any], value: Any) -> SettingsError:
    return SettingsError(f"{where}: expected {metadata['check'].expected}, got {_shown(metadata, value)!r}")


def _shown(metadata: Mapping[str, Any], value: Any) -> str:
    if metadata["secret"]:
        return "(secret)" if value else ""
    if isinstance(value, bool):
        return str(value).lower()
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)
