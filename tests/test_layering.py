"""Who may know whom, read from the source files themselves."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARED = ROOT / "shared" / "neardup"
KERNELS = SHARED / "kernels"
SERVICES = ROOT / "services" / "neardup_services"


def sources(*folders: Path) -> list[Path]:
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def module_of(path: Path) -> str:
    """The dotted name of a source file under shared/ or services/."""
    parts = path.relative_to(ROOT).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Dotted names that a module imports, anywhere in it; relative ones made absolute."""
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
    """Uses of the process environment, by attribute or by import."""
    names = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in names:
            found.append(f"line {node.lineno}: {_dotted(node)}")
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            found += [f"line {node.lineno}: os.{alias.name}" for alias in node.names if alias.name in names]
    return found


def dangerous_uses(tree: ast.AST) -> list[str]:
    """Ways to run what came as data."""
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


def test_there_is_something_to_check() -> None:
    for folder, least in ((SHARED, 15), (KERNELS, 1), (SERVICES, 1)):
        assert len(sources(folder)) >= least, folder


def test_kernels_import_only_numpy_and_numba_and_each_other() -> None:
    allowed = ("numpy", "numba", "neardup.kernels", "typing")  # typing is for readers and does nothing
    found = {
        module_of(path): [name for name in imports_of(path) if not is_under(name, *allowed)]
        for path in sources(KERNELS)
        if path.name != "cache.py"  # holds no kernel: it places the files of compiled kernels
    }
    assert {module: names for module, names in found.items() if names} == {}


def test_the_library_knows_neither_the_services_nor_faust() -> None:
    assert offenders(sources(SHARED), "neardup_services", "faust", "mode") == {}


def test_only_the_kafka_log_knows_aiokafka() -> None:
    kafka = sources(SHARED / "log" / "kafka")
    assert offenders(kafka, "aiokafka")
    assert offenders([path for path in sources(SHARED, SERVICES) if path not in kafka], "aiokafka") == {}


def test_only_the_settings_read_the_environment() -> None:
    found = {module_of(path): environment_reads(ast.parse(path.read_text())) for path in sources(SHARED, SERVICES)}
    assert found.pop("neardup.settings")
    assert {module: reads for module, reads in found.items() if reads} == {}


def test_nothing_runs_what_came_as_data() -> None:
    found = {module_of(path): dangerous_uses(ast.parse(path.read_text())) for path in sources(SHARED, SERVICES)}
    assert {module: uses for module, uses in found.items() if uses} == {}


# The checks themselves


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


def test_other_uses_of_os_are_no_reads_of_the_environment() -> None:
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
