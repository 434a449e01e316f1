"""The workflow, the hooks and the templates of the repository match the project."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
TEMPLATES = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()


def loaded(path: Path) -> dict[str, Any]:
    content = yaml.safe_load(path.read_text())
    assert isinstance(content, dict)
    return content


def lint_commands() -> list[list[str]]:
    """Return the commands of `make lint`, each as its words."""
    (recipe,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    return [shlex.split(line.replace("$(BIN)", ".venv/bin")) for line in recipe.splitlines()]


def test_the_hooks_run_the_commands_of_make_lint_from_the_environment_of_the_project() -> None:
    (repository,) = loaded(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    hooks = repository["hooks"]
    assert {hook["language"] for hook in hooks} == {"system"}
    # pre-commit passes files instead of the whole folder, so the configuration has to exclude files explicitly.
    entries = [[word for word in shlex.split(hook["entry"]) if word != "--force-exclude"] for hook in hooks]
    assert entries == [[word for word in command if word != "."] for command in lint_commands()]


def test_the_workflow_calls_make_with_every_supported_python() -> None:
    jobs = loaded(GITHUB / "workflows" / "ci.yml")["jobs"]
    calls = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert calls == ["make test", "make docs"]
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    supported = [name.split(" :: ")[-1] for name in classifiers if re.search(r":: 3\.\d+$", name)]
    assert jobs["test"]["strategy"]["matrix"]["python"] == supported


def test_every_file_that_the_workflow_reads_exists() -> None:
    text = (GITHUB / "workflows" / "ci.yml").read_text()
    named = re.findall(r"(?:deploy|shared)/[\w./*-]+", text)
    assert named
    for path in named:
        assert list(ROOT.glob(path)), path


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_an_issue_template_is_a_form_with_a_required_field(path: Path) -> None:
    form = loaded(path)
    assert {"name", "description", "labels", "body"} == form.keys()
    assert {field["type"] for field in form["body"]} <= {"input", "textarea", "dropdown", "markdown", "checkboxes"}
    names = [field["id"] for field in form["body"]]
    assert len(set(names)) == len(names)
    assert all(field["attributes"]["label"] for field in form["body"])
    assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_there_is_a_template_for_bugs_features_and_wrong_verdicts() -> None:
    assert [path.stem for path in TEMPLATES] == ["bug", "feature", "quality"]
