"""The prose of the project: docstrings, comments, messages and pages, each with its file and line."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_CONFIGURATION = ("Makefile", "Dockerfile", ".yml", ".yaml", ".toml", ".env")
_SHORT = re.compile(r"[a-z]+ [a-z]+ [a-z]+")


class Kind(Enum):
    """A kind of prose, which decides the rules that apply."""

    DOCSTRING = "docstring"
    COMMENT = "comment"
    MESSAGE = "message"
    PAGE = "page"


class Prose(NamedTuple):
    """A piece of prose, without the code that it quotes."""

    path: str
    line: int
    kind: Kind
    text: str

    @property
    def package(self) -> str:
        """The part of the project that the file belongs to: neardup.index, services, tests.log, or a page's path."""
        parts = self.path.split("/")
        if self.kind is Kind.PAGE or len(parts) == 1:
            return self.path
        inner = {"shared": 2, "tests": 1}.get(parts[0], len(parts))
        name = {"shared": "neardup"}.get(parts[0], parts[0])
        return f"{name}.{parts[inner]}" if len(parts) > inner + 1 else name


def without_code(text: str) -> str:
    """Return a text without blocks and spans of code and without the targets of links."""
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"``.*?``|`[^`]*`", "``", text, flags=re.DOTALL)
    return re.sub(r"\]\([^)]*\)", "]", text)


def prose_of_module(path: str, source: str) -> Iterator[Prose]:
    """Yield the docstrings, comments and messages of a Python module."""
    tree = ast.parse(source)
    documented: set[ast.expr] = set()
    parts: set[ast.expr] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documented.add(node.value)
            yield Prose(path, node.lineno, Kind.DOCSTRING, without_code(node.value.value.strip()))
        elif isinstance(node, ast.JoinedStr):
            parts.update(node.values)
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {node} & (documented | parts):
            text = node.value
        if _SHORT.search(text) and isinstance(node, ast.expr):
            yield Prose(path, node.lineno, Kind.MESSAGE, without_code(text))
    yield from _comments(path, source)


def _comments(path: str, source: str) -> Iterator[Prose]:
    """Yield the comments of a module. Comments on consecutive lines are one text."""
    lines: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if lines and token.start[0] != last + 1:
            yield Prose(path, last - len(lines) + 1, Kind.COMMENT, without_code(" ".join(lines)))
            lines = []
        lines.append(token.string.lstrip("#: "))
        last = token.start[0]
    if lines:
        yield Prose(path, last - len(lines) + 1, Kind.COMMENT, without_code(" ".join(lines)))


def all_prose() -> Iterator[Prose]:
    """Yield the prose of the whole project. Data in tests is not prose, so only their docstrings and comments count."""
    for folder in ("shared", "services", "deploy", "tests"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            found = prose_of_module(path, file.read_text())
            yield from (each for each in found if folder != "tests" or each.kind is not Kind.MESSAGE)
    for file in _configuration():
        for number, line in enumerate(file.read_text().splitlines(), 1):
            yield Prose(file.relative_to(ROOT).as_posix(), number, Kind.COMMENT, line)
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md"]
    for file in pages + sorted(each for folder in ("deploy", ".github") for each in (ROOT / folder).rglob("*.md")):
        text = re.sub(r"(?m)^ {4}.*$", "", file.read_text())
        yield Prose(file.relative_to(ROOT).as_posix(), 1, Kind.PAGE, without_code(text))


def _configuration() -> list[Path]:
    files = [path for path in ROOT.iterdir() if path.is_file()]
    files += [path for folder in ("deploy", ".github") for path in (ROOT / folder).rglob("*") if path.is_file()]
    return sorted(path for path in files if path.name.endswith(_CONFIGURATION))
