"""Allowed imports between packages, checked against the source files."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

ROOT = Path(__file__).parents[1]
SHARED = ROOT / "shared" / "neardup"
KERNELS = SHARED / "kernels"
SERVICES = ROOT / "services" / "neardup_services"

BASE: Final = {"errors", "metrics", "settings", "types", "unknown_variables"}
"""The modules directly in `neardup`. Together they form the package `base` of the table."""

_STREAM: Final = "base util signatures index.* matching log messages monitoring runtime"
_OFFLINE: Final = "base util kernels.common kernels.offline signatures matching offline offline.corpus"

ALLOWED: Final = {
    "base": "",
    "util": "base",
    "kernels": "",
    "kernels.common": "",
    "kernels.text": "kernels.common",
    "kernels.signatures": "kernels.common",
    "kernels.index": "kernels.common",
    "kernels.offline": "kernels.common kernels.signatures",
    "kernels.wire": "kernels.common",
    "text": "base util kernels.common kernels.text kernels.signatures",
    "signatures": "base util kernels.common kernels.signatures text",
    "index.plan": "base util kernels.common kernels.index",
    "index.lsm": "base util kernels.common kernels.index index.plan",
    "index.slices": "base util kernels.common kernels.index index.plan index.lsm",
    "index.buckets": "base util kernels.common kernels.index index.plan index.lsm index.slices",
    "index.psm": "base util kernels.common kernels.index index.plan index.lsm index.slices",
    "index.batch": "base util kernels.common kernels.index index.plan index.lsm index.slices index.psm",
    "index": "base util kernels.common kernels.index index.*",
    "matching": "base util signatures",
    "log": "base util",
    "log.kafka": "base util log",
    "messages": "base util kernels.wire signatures matching log",
    "monitoring": "base util kernels.signatures signatures matching messages",
    "runtime": "base util log messages",
    "stream": "",
    "stream.featurizer": _STREAM,
    "stream.shard": _STREAM,
    "stream.aggregator": _STREAM,
    "stream.canary": _STREAM,
    "offline": "base util signatures matching",
    "offline.corpus": "base util signatures matching log messages runtime offline",
    "offline.pairs": f"{_OFFLINE} index.*",
    "offline.clusters": f"{_OFFLINE} offline.pairs",
    "offline.results": f"{_OFFLINE} log messages offline.pairs offline.clusters",
    "offline.report": f"{_OFFLINE} offline.pairs offline.clusters",
    "offline.queries": f"{_OFFLINE} kernels.signatures offline.pairs offline.clusters offline.results",
    "offline.passes": f"{_OFFLINE} offline.pairs offline.clusters offline.results offline.report offline.queries",
    "offline.spark": (
        f"{_OFFLINE} index.plan offline.pairs offline.clusters offline.results offline.report offline.queries"
        " offline.passes"
    ),
    "deployment": "base util signatures index.* matching log messages monitoring runtime stream.* offline.*",
    "embedded": "base util log messages runtime deployment",
    "inputs": "base util text messages",
    "sample": "base util text messages",
    "resharding": "base util index.* log.* messages runtime stream.* deployment embedded",
    "evaluation": "base util kernels.index text signatures index.* matching messages deployment embedded sample",
    "replay": "base util text signatures index.* matching log messages runtime stream.* offline.* deployment",
    "neardup": "base embedded",
}
"""The packages that the modules of a package may import besides their own, imports for type checking included.

`log` names the modules directly in `neardup/log`; `log.*` includes those of its sub-packages. `neardup` is the
top-level `__init__.py` with the public names.
"""


def sources(*folders: Path) -> list[Path]:
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def module_of(path: Path) -> str:
    """Return the dotted name of a source file under shared/ or services/."""
    parts = path.relative_to(ROOT).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield the dotted names that a module imports anywhere in its source. Relative names are made absolute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and _dotted(node.func).endswith(("import_module", "__import__")):
            yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))


def imports_of(path: Path) -> list[str]:
    module = module_of(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return list(imports(ast.parse(path.read_text()), package))


def is_under(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def environment_reads(tree: ast.AST) -> list[str]:
    """Return the uses of the process environment, by attribute or by import."""
    names = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in names:
            found.append(f"line {node.lineno}: {_dotted(node)}")
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            found += [f"line {node.lineno}: os.{alias.name}" for alias in node.names if alias.name in names]
    return found


def dangerous_uses(tree: ast.AST) -> list[str]:
    """Return the uses of functions and modules that can execute data."""
    found = [
        f"import {name}"
        for name in imports(tree, "")
        if is_under(name, "pickle", "_pickle", "cPickle", "cloudpickle", "dill", "shelve", "marshal", "joblib")
        or is_under(name, "yaml.load", "yaml.unsafe_load", "yaml.full_load", "builtins.eval", "builtins.exec")
    ]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = _dotted(node.func)
        if called in ("eval", "exec", "builtins.eval", "builtins.exec") or is_under(
            called, "yaml.load", "yaml.unsafe_load", "yaml.full_load", "yaml.load_all"
        ):
            found.append(f"line {node.lineno}: {called}")
        for keyword in node.keywords:
            allowed = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            if keyword.arg == "allow_pickle" and not allowed:
                found.append(f"line {node.lineno}: {called}(allow_pickle=...)")
    return found


def offenders(paths: list[Path], *forbidden: str) -> dict[str, list[str]]:
    found = {module_of(path): [name for name in imports_of(path) if is_under(name, *forbidden)] for path in paths}
    return {module: names for module, names in found.items() if names}


# The table


def package_of(module: str, packages: Iterable[str]) -> str:
    """Return the innermost package of the library that contains a name: a module, or what a module defines."""
    inner = module.removeprefix("neardup").removeprefix(".")
    if inner.partition(".")[0] in BASE:
        return "base"
    while inner and inner not in packages:
        inner = inner.rpartition(".")[0]
    return inner or "neardup"


def allowed(row: str, packages: Iterable[str]) -> set[str]:
    """Return the packages that a row of the table names."""
    names = row.split()
    return {
        package
        for package in packages
        for name in names
        if package == name or (name.endswith(".*") and is_under(package, name.removesuffix(".*")))
    }


def violations(
    found: Mapping[str, Iterable[str]], packages: Iterable[str], table: Mapping[str, str] = ALLOWED
) -> list[str]:
    """Return the imports between packages that the table does not allow. `found`: the imported names by module."""
    packages = list(packages)
    bad = []
    for module, names in found.items():
        package = package_of(module, packages)
        may = allowed(table.get(package, ""), packages) | {package}
        for name in names:
            if is_under(name, "neardup") and (other := package_of(name, packages)) not in may:
                bad.append(f"{module}: {package} may not import {other} ({name})")
    return bad


def packages_of_the_library() -> set[str]:
    inner = {module_of(path).partition(".")[2] for path in SHARED.rglob("__init__.py")}
    return (inner - {""}) | {"base", "neardup"}


def test_there_is_something_to_check() -> None:
    for folder, least in ((SHARED, 15), (KERNELS, 1), (SERVICES, 1)):
        assert len(sources(folder)) >= least, folder
    with_modules = {path.parent for path in sources(SHARED)}
    assert {path for path in with_modules if not (path / "__init__.py").exists()} == set()


def test_every_package_has_a_row_and_every_row_a_package() -> None:
    assert set(ALLOWED) == packages_of_the_library()
    assert {path.stem for path in SHARED.glob("*.py")} - {"__init__"} == BASE


def test_every_row_names_packages_that_exist() -> None:
    packages = packages_of_the_library()
    for package, row in ALLOWED.items():
        for name in row.split():
            assert allowed(name, packages), f"{package}: there is no package {name}"


def test_imports_between_packages_follow_the_table() -> None:
    assert violations({module_of(path): imports_of(path) for path in sources(SHARED)}, packages_of_the_library()) == []


def test_the_table_has_no_cycle() -> None:
    packages = packages_of_the_library()
    graph = {package: allowed(row, packages) - {package} for package, row in ALLOWED.items()}
    TopologicalSorter(graph).prepare()
    with pytest.raises(CycleError):
        TopologicalSorter({**graph, "base": {"embedded"}}).prepare()


def test_the_services_of_the_stream_may_not_import_each_other() -> None:
    packages = packages_of_the_library()
    stream = {package for package in packages if is_under(package, "stream")}
    assert len(stream) == 5
    assert [each for each in sorted(stream) if allowed(ALLOWED[each], packages) & stream] == []


# Rules about single modules and other libraries


def test_kernels_import_only_numpy_and_numba_and_each_other() -> None:
    allowed = ("numpy", "numba", "neardup.kernels", "typing")  # typing has no effect at run time
    found = {
        module_of(path): [name for name in imports_of(path) if not is_under(name, *allowed)]
        for path in sources(KERNELS)
        if path.name != "cache.py"  # contains no kernel; it manages the files of compiled kernels
    }
    assert {module: names for module, names in found.items() if names} == {}


def test_the_library_imports_neither_the_services_nor_faust() -> None:
    assert offenders(sources(SHARED), "neardup_services", "faust", "mode") == {}


def test_only_the_kafka_log_imports_aiokafka() -> None:
    kafka = sources(SHARED / "log" / "kafka")
    assert offenders(kafka, "aiokafka")
    assert offenders([path for path in sources(SHARED, SERVICES) if path not in kafka], "aiokafka") == {}


def test_only_the_settings_read_the_environment() -> None:
    found = {module_of(path): environment_reads(ast.parse(path.read_text())) for path in sources(SHARED, SERVICES)}
    assert found.pop("neardup.settings")
    assert {module: reads for module, reads in found.items() if reads} == {}


def test_nothing_executes_data() -> None:
    found = {module_of(path): dangerous_uses(ast.parse(path.read_text())) for path in sources(SHARED, SERVICES)}
    assert {module: uses for module, uses in found.items() if uses} == {}


# The checks themselves


@pytest.mark.parametrize(
    ("module", "name", "is_allowed"),
    [
        ("neardup.a.b.x", "neardup.a.b.y.Y", True),  # its own package
        ("neardup.a.b.x", "neardup.a.z.Z", True),
        ("neardup.a.b.x", "neardup.a.c.y.Y", False),  # a sister package
        ("neardup.a.z", "neardup.a.c.y.Y", True),  # a.*
        ("neardup.a.z", "neardup.d.y", False),
        ("neardup.d.y", "neardup.errors.E", True),
        ("neardup.d.y", "neardup.a.z.Z", False),
        ("neardup.d.y", "numpy.a.z", True),
        ("neardup.errors", "neardup.types.T", True),
        ("neardup.errors", "neardup.d.y", False),
        ("neardup.new.y", "neardup.errors.E", False),  # a package without a row
        ("neardup.d.y", "neardup.Page", False),  # a public name, from inside
        ("neardup", "neardup.d.y.Y", True),
    ],
)
def test_an_import_is_checked_against_the_table(module: str, name: str, is_allowed: bool) -> None:
    table = {"base": "", "a": "base a.*", "a.b": "base a", "a.c": "base", "d": "base", "neardup": "d"}
    assert (violations({module: [name]}, {*table, "new"}, table) == []) == is_allowed


@pytest.mark.parametrize(
    ("source", "package", "expected"),
    [
        ("import numpy as np", "a.b", ["numpy"]),
        ("from numpy.typing import NDArray", "a.b", ["numpy.typing.NDArray"]),
        ("from . import x", "a.b", ["a.b.x"]),
        ("from ..c import x", "a.b", ["a.c.x"]),
        ("def f():\n    import faust.app", "a", ["faust.app"]),
        ("if TYPE_CHECKING:\n    from aiokafka import X", "a", ["aiokafka.X"]),
        ("importlib.import_module('faust')", "a", ["faust"]),
        ("__import__('faust')", "a", ["faust"]),
    ],
)
def test_imports_are_found_in_every_form(source: str, package: str, expected: list[str]) -> None:
    assert list(imports(ast.parse(source), package)) == expected


@pytest.mark.parametrize(
    "source",
    ["import os\nos.environ['A']", "import os\nos.getenv('A')", "from os import environ", "from os import getenv as g"],
)
def test_a_read_of_the_environment_is_found_in_every_form(source: str) -> None:
    assert environment_reads(ast.parse(source))


def test_other_uses_of_os_are_not_reads_of_the_environment() -> None:
    assert environment_reads(ast.parse("import os\nos.cpu_count()\nenviron = {}\nenviron.get('A')")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle", "from pickle import loads", "import _pickle", "eval('1')", "exec('1')",
        "import builtins\nbuiltins.eval('1')", "import yaml\nyaml.load(x)", "from yaml import load",
        "np.load(path, allow_pickle=True)", "np.load(path, allow_pickle=flag)",
    ],
)  # fmt: skip
def test_a_way_to_run_data_is_found_in_every_form(source: str) -> None:
    assert dangerous_uses(ast.parse(source))


@pytest.mark.parametrize(
    "source",
    [
        "import yaml\nyaml.safe_load(x)",
        "np.load(path, allow_pickle=False)",
        "model.eval()",
        "import json\njson.load(x)",
    ],
)
def test_safe_ways_to_read_data_are_allowed(source: str) -> None:
    assert dangerous_uses(ast.parse(source)) == []
