"""Settings, read once from `NEARDUP_*` environment variables and an optional TOML file into a frozen object.

The environment takes precedence over the file, the file over a preset, and a preset over the defaults. The variable
`NEARDUP_SETTINGS` names the file, which has the same names in lower case, without the prefix. This is the only module
that reads the environment; all other modules receive a `Settings`.

A variable with the prefix that is not a setting is never ignored silently: a misspelt setting raises an error, any
other variable logs a warning. Exempt are `NEARDUP_TEST_*`, which configure the test suite, and the variables that
Kubernetes sets for a Service whose name begins with `neardup-`.
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
    # In addition to bands, a search for fingerprints that differ in a few bits finds hardly any further pages.
    "fast": {"hamming": 0, "bands": "12x10"},
    DEFAULT_PRESET: {},
    # These bands find nearly every pair that the rule accepts, but also more pairs that it rejects.
    "thorough": {"bands": "25x5"},
}
"""Named sets of settings, from fast to thorough. `neardup evaluate --presets` measures the cost and recall of each."""
PAIR_SOURCES: Final = ("shingles", "supers", "bands", "spots", "hamming", "psm")


@dataclass(frozen=True, slots=True)
class Check:
    """A parser and a validity check for a value. `expected` describes valid values in error messages."""

    expected: str
    parse: Callable[[str], Any]
    allowed: Callable[[Any], bool] = lambda value: True


def _whole(low: int, high: int) -> Check:
    return Check(f"a whole number from {low} to {high}", int, lambda value: low <= value <= high)


def _seconds(low: float, high: float) -> Check:
    return Check(f"a number of seconds from {low:g} to {high:g}", float, lambda value: low <= value <= high)


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
_TEXT: Final = Check("printable text", str, lambda value: value.isprintable())
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
    """All settings with their defaults and descriptions. `Settings.load` reads them from the environment."""

    broker: str = _setting("127.0.0.1:9092", _TEXT, "Kafka bootstrap servers as comma-separated host:port pairs.")
    security_protocol: str = _setting(
        "PLAINTEXT",
        _choice("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        "Protocol for connections to the broker: with or without TLS (SSL), with or without a login (SASL).",
    )
    sasl_mechanism: str = _setting(
        "SCRAM-SHA-512",
        _choice("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        "SASL mechanism for the login, used with the SASL protocols only.",
    )
    sasl_username: str = _setting("", _TEXT, "User name for the SASL login.")
    sasl_password: str = _setting(
        "", _TEXT, "Password for the SASL login. It is masked wherever settings are printed.", secret=True
    )
    tls_ca: str = _setting(
        "",
        _TEXT,
        "PEM file with the certificate authority of the broker. If empty, the system's certificates are used.",
    )
    tls_cert: str = _setting(
        "", _TEXT, "PEM file with the certificate of this client. Needed only if the broker requires one."
    )
    tls_key: str = _setting("", _TEXT, "PEM file with the private key of the client certificate.")
    tls_key_password: str = _setting(
        "", _TEXT, "Password of the private key. It is masked wherever settings are printed.", secret=True
    )

    prefix: str = _setting(
        "neardup",
        _NAME,
        "First part of the name of every topic and consumer group. Deployments with different prefixes can share a "
        "broker.",
    )
    instance: str = _setting(
        "", Check("empty or a name", str, lambda v: v == "" or _NAME.allowed(v)),
        "Name of this worker within its service, kept across restarts (static membership in Kafka). A worker with "
        "a name gets its partitions back after a quick restart without a rebalance. If empty, the worker is an "
        "ordinary member.",
    )  # fmt: skip
    session_timeout_seconds: float = _setting(
        10.0,
        _seconds(1, 1800),
        "Time in seconds without a heartbeat after which the broker gives the partitions of a worker to other workers.",
    )
    request_timeout_seconds: float = _setting(
        120.0,
        _seconds(1, 3600),
        "Maximum time in seconds that a request to the broker may take. The worker stops if an output is not "
        "acknowledged within it.",
    )
    # lz4 is not the default because aiokafka uses its slowest level, which takes five times as long and saves less.
    compression: str = _setting(
        "zstd", _choice("none", "gzip", "snappy", "lz4", "zstd"), "Compression of the records that workers produce."
    )
    max_message_bytes: int = _setting(
        8 * 2**20,
        _whole(2**16, 15 * 2**20),
        "Maximum size of a record on the pages topic in bytes. The dead-letters topic accepts 1 MiB more.",
    )

    page_partitions: int = _setting(
        2, _whole(1, 10_000), "Number of partitions of the pages topic. At most this many featurizers work in parallel."
    )
    owners: int = _setting(
        2,
        _whole(1, 10_000),
        "Number of partitions of the inbox topic, each of which owns a share of the fingerprints. At most this "
        "many aggregators work in parallel.",
    )
    verdict_partitions: int = _setting(
        2, _whole(1, 10_000), "Number of partitions of each of the topics verdicts, documents and clusters."
    )
    generation: int = _setting(
        0,
        _whole(0, 10_000),
        "Number of times that the deployment was resharded. It is part of the names of the probes and inbox "
        "topics; `neardup reshard` prints the value to set.",
    )
    replication: int = _setting(1, _whole(1, 10), "Number of replicas of every topic.")
    page_retention_hours: int = _setting(
        168,
        _whole(1, 1_000_000),
        "Time in hours for which the broker keeps pages, verdicts, canaries and dead letters.",
    )

    main_content: bool = _setting(
        False,
        _YES_OR_NO,
        "Extract only the main content of a page and ignore navigation. If a page has no main content, all of its "
        "text is used.",
    )
    page_bytes: int = _setting(
        8 * 2**20,
        _whole(1, 2**30),
        "Maximum size of a page in bytes. Larger pages are truncated or rejected (see NEARDUP_OVER_LIMIT).",
    )
    page_nesting: int = _setting(
        512,
        _whole(1, 100_000),
        "Maximum number of HTML elements that are open at the same time. Pages with deeper nesting are truncated "
        "or rejected (see NEARDUP_OVER_LIMIT).",
    )
    page_tokens: int = _setting(
        200_000,
        _whole(1, 2**30),
        "Maximum number of tokens of a page. Longer pages are truncated or rejected (see NEARDUP_OVER_LIMIT).",
    )
    over_limit: str = _setting(
        "cut",
        _choice("cut", "reject"),
        "Treatment of pages that exceed a limit: cut truncates the page and processes the rest, reject sends it to "
        "dead-letters.",
    )
    phrases: tuple[int, ...] = _setting(
        (1,),
        Check(
            "phrase lengths from 1 to 8 joined by +, as in 1 or 1+2",
            _numbers,
            lambda value: bool(value) and all(1 <= n <= 8 for n in value),
        ),
        "Number of consecutive words in a feature of the fingerprint. Several lengths are joined by +, as in 1+2.",
    )
    weighting: str = _setting(
        "presence",
        _choice("presence", "tf", "log-tf", "tf-idf"),
        "Weight of a feature in the fingerprint: 1 (presence), its frequency in the page (tf), the logarithm of that "
        "frequency (log-tf), or the frequency multiplied by the inverse document frequency (tf-idf).",
    )
    idf_table: str = _setting(
        "",
        _TEXT,
        "File with the document frequencies for the weighting tf-idf. Required by that weighting, and an error "
        "with any other.",
    )
    drop_stop_words: bool = _setting(False, _YES_OR_NO, "Leave stop words out of the features of the fingerprint.")
    stem: bool = _setting(
        False, _YES_OR_NO, "Replace words by their Snowball stems in the features of the fingerprint."
    )
    language: str = _setting(
        "detect",
        _NAME,
        "Language of stop words and stems, by its English name, as in german. With detect, the language of each "
        "page is detected.",
    )
    shingle_words: int = _setting(
        3,
        _whole(1, 64),
        "Number of consecutive words in a shingle. Resemblance and containment are computed over shingles.",
    )

    hamming: int = _setting(
        3,
        _whole(0, 7),
        "Maximum number of differing bits (k) between two fingerprints for the tables to return them as candidates.",
    )
    search: str = _setting(
        "exact",
        _choice("exact", "probabilistic"),
        "Search method of the fingerprint tables: exact uses several permuted tables, probabilistic uses one table "
        "and tries likely bit flips.",
    )
    tables: int = _setting(
        10,
        _whole(1, 1000),
        "Maximum number of permuted tables of the exact search. More tables need more memory and compare fewer "
        "fingerprints per probe.",
    )
    slice_bits: int = _setting(
        0, _whole(0, 16), "Each fingerprint table is divided into 2 to the power of this number of shard partitions."
    )
    flip_model: str = _setting(
        "",
        _TEXT,
        "File with the flip model of the probabilistic search. If empty, a model from simulated weights is used.",
    )
    flips: int = _setting(
        24,
        _whole(1, 4096),
        "Number of bit flips of the header that the probabilistic search tries per probe. More flips find more "
        "near-duplicates and take longer.",
    )
    header_bits: int = _setting(
        20, _whole(1, 64), "Number of leading bits of a fingerprint that the probabilistic search uses as its header."
    )
    bands: str = _setting(
        "18x7",
        Check("bands x values per band, as in 18x7, or none", str, lambda v: _BANDS.fullmatch(v) is not None),
        "Number of bands of the sketch and number of values per band, as in 18x7. Pages that share a band are "
        "candidates of each other. With none, only fingerprints are searched.",
    )
    spots: bool = _setting(
        False, _YES_OR_NO, "Keep spot signatures in sketches. Required by the pair source spots of the offline pass."
    )
    band_slice_bits: int = _setting(
        1,
        _whole(0, 16),
        "The table with the buckets of all bands is divided into 2 to the power of this number of shard partitions.",
    )
    codec: str = _setting(
        "plain",
        _choice("plain", "elias-fano", "huffman"),
        "Encoding of the sorted runs of a fingerprint table. The compressed encodings need less memory and more "
        "time per probe.",
    )
    most_matches: int = _setting(
        1000,
        _whole(1, 10**6),
        "Maximum number of matches per probe of a fingerprint table. If there are more, the nearest are kept.",
    )
    common_bucket: int = _setting(
        1000,
        _whole(2, 10**6),
        "Number of documents at which a bucket counts as common: from then on it returns no candidates and accepts no "
        "further documents.",
    )
    ttl_hours: float = _setting(
        0.0,
        Check("a number of hours, 0 or more", float, lambda value: value >= 0),
        "Time in hours for which shards keep a fingerprint. With 0, fingerprints never expire.",
    )
    near_resemblance: float = _setting(
        0.65,
        _share(),
        "Minimum resemblance of two pages for the later one to be a near-duplicate. Resemblance is the number of "
        "shingles in both pages divided by the number of shingles in either.",
    )
    contained: float = _setting(
        0.95,
        _share(),
        "Minimum containment of a page in an earlier one for the verdict that it is contained. Containment is the "
        "number of shingles in both pages divided by the number of shingles of the page.",
    )
    variants: int = _setting(
        8,
        _whole(1, 1000),
        "Maximum number of different pages with the same fingerprint that are kept for comparison. If there are more, "
        "the latest are dropped.",
    )
    candidates: int = _setting(
        1000,
        _whole(1, 10**5),
        "Maximum number of candidates that a page is compared with. If there are more, the nearest are compared.",
    )

    corpus: str = _setting(
        "",
        _TEXT,
        "Directory or fsspec URL of the corpus of the offline pass. If empty, the corpus is the folder `corpus` in the "
        "state directory.",
    )
    corpus_seconds: float = _setting(
        60.0,
        _seconds(0, 86_400),
        "Maximum time in seconds from the arrival of a settled document to its appearance in the corpus.",
    )
    recluster_seconds: float = _setting(
        3600.0, _seconds(1, 31_536_000), "Interval between offline passes of the recluster service in seconds."
    )
    pair_sources: tuple[str, ...] = _setting(
        ("shingles", "hamming"),
        Check(
            f"one or more of {', '.join(PAIR_SOURCES)}, joined by +",
            lambda text: tuple(text.split("+")),
            lambda value: bool(value) and set(value) <= set(PAIR_SOURCES),
        ),
        "Sources of the document pairs that the offline pass compares, joined by +.",
    )
    common_shingle: int = _setting(
        1000,
        _whole(2, 10**6),
        "Number of documents at which a shingle counts as common. The offline pass ignores common shingles.",
    )
    spot_resemblance: float = _setting(
        0.44,
        _share(),
        "Minimum resemblance of spot signatures for the offline pass to treat two pages as near-duplicates.",
    )
    cluster_rule: str = _setting(
        "representative",
        _choice("representative", "transitive"),
        "Condition for joining a cluster: representative requires that a document resembles the first document of "
        "the cluster, transitive that it resembles any document of it.",
    )
    representative: str = _setting(
        "first",
        _choice("first", "longest", "shortest-url", "https"),
        "Document that represents a cluster: the first, the longest, the one with the shortest URL, or the first "
        "with an https URL.",
    )
    large_cluster: int = _setting(
        10_000,
        _whole(2, 10**9),
        "Number of documents at which the report of the offline pass warns about a cluster.",
    )
    offline_memory_mb: int = _setting(
        1024,
        _whole(16, 10**7),
        "Memory in MiB that the offline pass may use for sorting and merging. Data that does not fit is spilled to "
        "disk.",
    )

    canary_share: float = _setting(
        0.001, _share(), "Share of the pages for which the canary service plants a near-copy, to estimate recall."
    )
    shadow_share: float = _setting(
        0.01,
        _share(),
        "Share of the settled documents that are compared with all recent documents, to estimate recall.",
    )
    shadow_documents: int = _setting(
        4096, _whole(1, 10**6), "Number of recent documents that a sampled document is compared with."
    )
    host_pages: int = _setting(
        100, _whole(1, 10**6), "Number of recent pages of a host at which its share of duplicates is monitored."
    )
    sample_seed: int = _setting(
        0, _whole(0, 2**62), "Seed for the choice of the pages and documents that the recall estimates use."
    )

    state: Path = _setting(
        Path("state"), _PATH, "Directory for the state of the partitions of this worker. Every worker needs its own."
    )
    threads: int = _setting(0, _whole(0, 1024), "Number of threads that process records. With 0, one thread per core.")
    processes: int = _setting(
        0,
        _whole(0, 1024),
        "Number of processes that featurize pages. With 1, the worker featurizes them in its own process. With 0, a "
        "featurizer uses 2 processes, and a run without a broker one per core.",
    )
    poll_records: int = _setting(
        2000, _whole(1, 1_000_000), "Maximum number of records in a batch that a stage processes."
    )
    checkpoint_seconds: float = _setting(
        10.0, _seconds(0.01, 86_400), "Maximum time in seconds between two checkpoints of a partition."
    )
    checkpoint_records: int = _setting(
        200_000, _whole(1, 10**12), "Maximum number of records between two checkpoints of a partition."
    )
    checkpoint_bytes: int = _setting(
        2 * 2**20,
        _whole(1, 10**12),
        "Size in bytes of the unsaved changes of an aggregator partition at which a checkpoint starts.",
    )
    stop_seconds: float = _setting(
        20.0,
        _seconds(0.1, 3600),
        "Maximum time in seconds to wait for acknowledgements and for a running offline pass when a worker stops "
        "or loses a partition.",
    )
    stuck_seconds: float = _setting(
        60.0,
        _seconds(0.1, 86_400),
        "Time in seconds without progress after which a partition with lag counts as stuck and readiness fails.",
    )

    verdict_format: str = _setting("json", _choice("json", "msgpack"), "Encoding of the records on the verdicts topic.")
    web_host: str = _setting(
        "127.0.0.1", _TEXT, "Address on which a worker serves /metrics, /healthz and /readyz, and recluster also /api."
    )
    web_port: int = _setting(6066, _whole(1, 65_535), "Port on which a worker serves its HTTP endpoints.")
    log_format: str = _setting(
        "text", _choice("text", "json"), "Format of log lines: text for people, json for log collectors."
    )
    log_level: str = _setting(
        "info", _choice("debug", "info", "warning", "error"), "Minimum level of the log lines that are written."
    )

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
        """Read the preset, the file and the environment, then apply `overrides`. Raises SettingsError.

        `other` is a settings file that a command received as an option; it takes precedence over the environment.
        A variable that looks like a misspelt setting raises; any other unknown variable is logged once.
        `allow_unknown` turns off both.
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
        """Return the variable, the value and the description of every setting. Secrets are masked."""
        return [
            (variable_of(each.name), _shown(each.metadata, getattr(self, each.name)), each.metadata["about"])
            for each in fields(self)
        ]


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()


def unknown_variables(environ: Mapping[str, str] | None = None) -> list[UnknownVariable]:
    """Return the variables that seem to be meant for this program but are not settings, sorted by name."""
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
