"""The documentation matches the program: everything that a page names exists, and all commands are documented."""

import ast
import importlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import click
import prometheus_client
import pytest

import neardup
from neardup import metrics
from neardup.deployment.deployment import SERVICES
from neardup.messages.topics import Topics
from neardup.settings import FILE_VARIABLE, Settings
from neardup_services.cli import main
from tests.support.commands import all_commands, subcommand

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "deploy" / "docs"
MAKEFILE = (ROOT / "Makefile").read_text()
FILES = [ROOT / "README.md", ROOT / "CHANGELOG.md"]
FILES += sorted(path for folder in ("deploy", ".github") for path in (ROOT / folder).rglob("*.md"))
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text() for path in FILES}

EXAMPLES = {
    "NEARDUP_HAMMNG": "a misspelt variable",
    "NEARDUP_TEST": "the prefix of the variables of the test suite",
    "NEARDUP_TEST_KAFKA_VERSION": "a variable of the test suite",
    "NEARDUP_SERVICE_HOST": "a variable that Kubernetes sets",
}
"""Names that look like settings, with the reason why a page may contain them."""
FOREIGN_OPTIONS = {
    "--json": "also an option of tests/bench/run.py",
    "--full": "also an option of tests/bench/run.py",
    "--require-hashes": "pip",
    "--bootstrap-server": "the tools of Kafka",
    "--command-config": "the tools of Kafka",
    "--volumes": "docker compose",
    "--wait": "also an option of docker compose",
}
"""Options of other programs that pages mention by themselves."""
WITHOUT_BROKER = ("sample", "dedup", "score", "explain", "recluster", "lookup", "similar", "status")
"""Commands of transcripts that the tests run. Others need a broker."""

every_page = pytest.mark.parametrize("page", PAGES)


def code_of(text: str) -> Iterator[str]:
    """Yield the code of a page: the lines of its blocks, and the spans in its prose."""
    prose = []
    fence = None
    for line in text.splitlines():
        if fence is not None:
            if line.strip().startswith(fence):
                fence = None
            else:
                yield line.strip()
        elif opened := re.match(r" *(```+|~~~+)", line):
            fence = opened[1]
        elif line.startswith("    "):
            yield line.strip()
        else:
            prose.append(line)
    yield from (" ".join(span.split()) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", "\n".join(prose)))


def commands_of(text: str) -> set[str]:
    """Return the calls of the command line in a page, without the environment and the prompt."""
    joined = re.sub(r"\\\n\s*", "", text)
    found = set()
    for code in code_of(joined):
        line = re.sub(r"^\$ |\s#.*", "", code)
        for call in re.findall(r"(?:^|[|;&(] ?|-- |^(?:[A-Z_]+=\S* )+|bin/)neardup (?=[a-z-])([^|;&>`)]*)", line):
            found.add(call.strip())
    return found


def check_command(call: str) -> None:
    """Raise if there is no such command, or if it does not have one of the options."""
    words = shlex.split(call)
    current: click.Command = main
    while isinstance(current, click.Group) and words and not words[0].startswith("-"):
        current = subcommand(current, words.pop(0))
    known = {option for parameter in current.params for option in parameter.opts} | {"--help", "-h", "--version"}
    for word in words:
        if word.startswith("-") and word != "-":
            assert word.split("=")[0] in known, f"neardup {call}: {word} is not an option"


@cache
def every_option() -> set[str]:
    return {option for _, command in all_commands(main, "") for each in command.params for option in each.opts} | {
        "--help"
    }


def metric_names() -> set[str]:
    kinds = (prometheus_client.Counter, prometheus_client.Gauge, prometheus_client.Histogram)
    found = set()
    for each in vars(metrics).values():
        if isinstance(each, kinds):
            (family,) = each.collect()
            found.add(family.name + ("_total" if family.type == "counter" else ""))
    return found


def is_importable(name: str) -> bool:
    """Return whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


def anchors_of(text: str) -> set[str]:
    without_code = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", without_code, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads}


@every_page
def test_every_command_and_option_exists(page: str) -> None:
    for call in commands_of(PAGES[page]):
        check_command(call)
    for code in code_of(PAGES[page]):
        if found := re.fullmatch(r"(--[a-z][a-z-]+)([ =][A-Z]+)?", code):
            assert found[1] in every_option() | FOREIGN_OPTIONS.keys(), found[1]


@pytest.mark.parametrize(
    "text", ["`neardup nothing`", "    $ neardup status --nothing", "```\nneardup status --no x\n```"]
)
def test_a_command_that_does_not_exist_is_found(text: str) -> None:
    (call,) = commands_of(text)
    with pytest.raises((KeyError, AssertionError)):
        check_command(call)


def test_commands_are_found_in_all_kinds_of_code() -> None:
    text = (
        "Run `neardup plan --pages 8e9`, then\n\n    $ NEARDUP_OWNERS=4 neardup reshard  # a comment\n\n```sh\n"
        "neardup sample --out - | neardup produce - \\\n  --wait\nkubectl exec x -- neardup status\n```\n"
    )
    assert commands_of(text) == {"plan --pages 8e9", "reshard", "sample --out -", "produce - --wait", "status"}


@every_page
def test_every_variable_exists(page: str) -> None:
    known = {variable for variable, _, _ in Settings().describe()} | {FILE_VARIABLE, *EXAMPLES}
    named = set(re.findall(r"NEARDUP_[A-Z_]*[A-Z](?!\*|_\*|_\.\.\.|\.\.\.|[A-Z_])", PAGES[page]))
    assert named - {f"NEARDUP_{stem}" for stem in ("SASL", "TLS")} <= known


@every_page
def test_every_metric_exists(page: str) -> None:
    named = set(re.findall(r"(?<![\w./-])neardup_[a-z_]*[a-z](?![\w.*]|_\*)", PAGES[page])) - {"neardup_services"}
    known = metric_names()
    assert {re.sub(r"_(bucket|sum|count)$", "", name) if name not in known else name for name in named} <= known


@every_page
def test_every_module_exists(page: str) -> None:
    known = {*asdict(Topics.under("neardup")).values(), *(f"neardup.{service}" for service in SERVICES), "neardup.toml"}
    for code in code_of(PAGES[page]):
        for name in re.findall(r"(?<![\w./:-])(neardup(?:_services)?(?:\.[\w-]+)+)(?![\w-]|/\w)", code):
            # The name of a topic or a group may contain a generation, and NAME stands for any name.
            dotted = re.sub(r"\.[A-Z]+$", "", name)
            assert re.sub(r"^neardup\.\d+\.", "neardup.", name) in known or is_importable(dotted), name
        if imported := re.match(r"from (neardup[\w.]*) import ([\w, ]+)", code):
            for name in imported[2].split(","):
                assert is_importable(f"{imported[1]}.{name.strip()}"), code


@every_page
def test_every_path_exists(page: str) -> None:
    for code in code_of(PAGES[page]):
        for path in re.findall(r"(?<![\w./*-])((?:shared|services|deploy|tests|\.github)/[\w./*-]*[\w/*])", code):
            found = list(ROOT.glob(path)) if "*" in path else [ROOT / path]
            assert found, path
            assert all(each.exists() for each in found), path
        if re.fullmatch(r"(\w+/)*\w+\.py", code):
            sources = (path for folder in ("shared", "services", "deploy", "tests") for path in all_files(folder))
            assert any(f"/{path}".endswith(f"/{code}") for path in sources), code


@cache
def all_files(folder: str) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.py")]


@every_page
def test_every_make_target_exists(page: str) -> None:
    for code in code_of(PAGES[page]):
        for target in re.findall(r"(?:^|\$ |&& )make ([a-z]+)", code):
            assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target


@every_page
def test_every_link_leads_to_a_file_and_a_heading(page: str) -> None:
    text = PAGES[page]
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", text):
        path = ((ROOT / page).parent / target) if target else ROOT / page
        assert path.exists(), target
        if anchor and path.suffix == ".md":
            assert anchor in anchors_of(path.read_text()), f"{target}#{anchor}"


@every_page
def test_every_python_example_can_be_parsed(page: str) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", PAGES[page], re.MULTILINE | re.DOTALL):
        ast.parse(block)


def test_the_generated_pages_are_current() -> None:
    done = subprocess.run(
        [sys.executable, DOCS / "references.py", "--check"], capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


def test_every_command_and_option_has_help() -> None:
    for path, command in all_commands(main, "neardup"):
        assert command.help, path
        for parameter in command.params:
            assert not isinstance(parameter, click.Option) or parameter.help, f"{path} {parameter.name}"
        assert f"### {path}\n" in PAGES["deploy/docs/cli.md"]


@pytest.mark.parametrize(("variable", "about"), [(variable, about) for variable, _, about in Settings().describe()])
def test_the_description_of_every_setting_is_a_full_phrase(variable: str, about: str) -> None:
    assert re.fullmatch(r"[A-Z].{20,}\.", about), about
    assert f"| `{variable}` |" in PAGES["deploy/docs/reference/settings.md"]


def test_every_metric_is_documented_and_its_help_is_a_full_phrase() -> None:
    documented = re.findall(
        r"^\| `(neardup_\w+)` \|.*\| (.*) \|$", PAGES["deploy/docs/reference/metrics.md"], re.MULTILINE
    )
    assert {name for name, _ in documented} == metric_names()
    for name, about in documented:
        assert re.fullmatch(r"(\d|[A-Z]).{20,}\.", about), name


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    tree = ast.parse((DOCS / "conf.py").read_text())
    (navigation,) = (
        ast.literal_eval(each.value)
        for each in tree.body
        if isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == "NAVIGATION" and each.value
    )
    listed = {path for pages in navigation.values() for name in pages for path in DOCS.glob(f"{name}.md")}
    assert {*DOCS.rglob("*.md")} - listed == {DOCS / "index.md"} & {*DOCS.rglob("*.md")}


def test_every_make_target_is_in_make_help_and_the_other_way_round() -> None:
    (targets,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    described = set(re.findall(r"^#   make ([a-z]+) ", MAKEFILE, re.MULTILINE))
    assert described == set(targets.split()) - {"help", "clean"}


def test_the_readme_has_at_most_150_lines() -> None:
    assert len(PAGES["README.md"].splitlines()) <= 150


class Step(NamedTuple):
    """A command of a transcript with the output that the page shows."""

    command: str
    output: list[str]


def transcripts(text: str) -> Iterator[list[Step]]:
    """Yield the steps of every block of a page that begins with a prompt."""
    for block in re.split(r"\n(?! {4}\S)", text):
        steps: list[Step] = []
        for line in block.splitlines():
            if line.startswith("    $ "):
                steps.append(Step(line[6:], []))
            elif steps and line.startswith("    "):
                steps[-1].output.append(line.strip())
        if steps:
            yield steps


def run(command: str, folder: Path) -> str:
    """Run a command of a transcript and return its output."""
    words = shlex.split(command)
    variables = dict(words.pop(0).split("=", 1) for _ in words[:] if re.match(r"NEARDUP_\w+=", words[0]))
    if words[0] == "cat":
        return (folder / words[1]).read_text()
    arguments = [sys.executable, "-m", "neardup_services.cli", *words[1:]]
    done = subprocess.run(
        arguments, capture_output=True, text=True, timeout=180, cwd=folder, env=os.environ | variables
    )
    return done.stdout + done.stderr


def assert_shown(shown: list[str], printed: str) -> None:
    for line in shown:
        # The candidates that a page is compared with depend on timing, and with them the relation in a verdict.
        if line != "..." and not line.startswith("duplicates:"):
            assert line in printed


def test_the_demo_prints_what_the_readme_shows(tmp_path: Path) -> None:
    (steps,) = [each for each in transcripts(PAGES["README.md"]) if each[0].command == "make demo"]
    makefile = MAKEFILE.replace("$(BIN)/", "").replace("$(DEMO)", ".run/demo")
    (tmp_path / ".run" / "demo").mkdir(parents=True)
    commands = [line for line in steps[0].output if line.startswith("neardup ")]
    assert len(commands) == 3
    printed = ""
    for command in commands:
        assert f"\t{command}\n" in makefile
        printed += run(command, tmp_path)
    assert_shown([line for line in steps[0].output if line not in commands], printed)


@pytest.mark.parametrize("page", [page for page in PAGES if page.endswith("/getting-started.md")])
def test_getting_started_shows_what_its_commands_print(page: str, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"url": "https://a.example/"}\n')
    steps = [step for block in transcripts(PAGES[page]) for step in block]
    ran = 0
    for command, output in steps:
        name = re.search(rf"\bneardup ({'|'.join(WITHOUT_BROKER)})\b", command)
        if name or (command.startswith("cat ") and (tmp_path / command.split()[1]).exists()):
            assert_shown(output, run(command, tmp_path))
            ran += 1
    assert ran >= 3


def test_the_version_is_in_the_changelog() -> None:
    assert f"## {neardup.__version__}" in PAGES["CHANGELOG.md"]
