import os
import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from neardup.deployment.plan import plan_of
from neardup.errors import SettingsError
from neardup.settings import FILE_VARIABLE, PRESETS, Settings, unknown_variables, variable_of
from neardup_services.cli import main

ROOT = Path(__file__).parents[1]
SECRET = "hunter2-hunter2"


def toml(path: Path, text: str) -> dict[str, str]:
    """Return an environment with a settings file that has this text."""
    file = path / "neardup.toml"
    file.write_text(text)
    return {FILE_VARIABLE: str(file)}


def test_the_defaults_are_valid() -> None:
    assert Settings.load({}) == Settings()


def test_every_setting_has_a_variable_and_a_description() -> None:
    described = Settings().describe()
    assert [variable for variable, _, _ in described] == [f"NEARDUP_{each.name.upper()}" for each in fields(Settings)]
    assert all(about for _, _, about in described)


def test_values_are_read_from_the_environment_with_their_types() -> None:
    settings = Settings.load(
        {"NEARDUP_OWNERS": "7", "NEARDUP_CHECKPOINT_SECONDS": "2.5", "NEARDUP_STATE": "/x/y", "NEARDUP_PREFIX": "a.b-c"}
    )
    assert settings.owners == 7
    assert settings.checkpoint_seconds == 2.5
    assert settings.state == Path("/x/y")
    assert settings.prefix == "a.b-c"


def test_without_a_mapping_the_process_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [each for each in os.environ if each.startswith("NEARDUP_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("NEARDUP_OWNERS", "9")
    assert Settings.load() == Settings(owners=9)


def test_values_are_read_from_a_toml_file(tmp_path: Path) -> None:
    environ = toml(tmp_path, 'owners = 5\nprefix = "other"\nstuck_seconds = 1.5\nstate = "/s"\n')
    assert Settings.load(environ) == Settings(owners=5, prefix="other", stuck_seconds=1.5, state=Path("/s"))


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    environ = toml(tmp_path, "owners = 5\nthreads = 3\n") | {"NEARDUP_OWNERS": "6"}
    settings = Settings.load(environ)
    assert settings.owners == 6
    assert settings.threads == 3
    assert settings.page_partitions == Settings().page_partitions


def test_overrides_win_over_everything(tmp_path: Path) -> None:
    environ = toml(tmp_path, "owners = 5\n") | {"NEARDUP_OWNERS": "6"}
    assert Settings.load(environ, owners=7).owners == 7


def test_an_empty_file_variable_names_no_file() -> None:
    assert Settings.load({FILE_VARIABLE: ""}) == Settings()


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("NEARDUP_HAMMNG", "NEARDUP_HAMMING"),
        ("NEARDUP_OWNER", "NEARDUP_OWNERS"),
        ("NEARDUP_WEBPORT", "NEARDUP_WEB_PORT"),
        ("NEARDUP_WEBB_PORT", "NEARDUP_WEB_PORT"),
        ("NEARDUP_CHECKPOINT_SEC", "NEARDUP_CHECKPOINT_SECONDS"),
        ("NEARDUP_SETTING", "NEARDUP_SETTINGS"),
        ("NEARDUP__OWNERS", "NEARDUP_OWNERS"),
        ("NEARDUP-OWNERS", "NEARDUP_OWNERS"),
        ("NEARDUPOWNERS", "NEARDUP_OWNERS"),
        ("neardup_owners", "NEARDUP_OWNERS"),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_closest_name(variable: str, meant: str) -> None:
    with pytest.raises(SettingsError, match=f"^{variable}: no setting has this name, did you mean {meant}\\?"):
        Settings.load({variable: "3"})
    assert Settings.load({variable: "3"}, allow_unknown=True) == Settings()


def test_all_misspelt_variables_are_named_at_once_and_no_value_is() -> None:
    with pytest.raises(SettingsError, match=r"NEARDUP_OWNER: .*NEARDUP_SASL_PASWORD: ") as raised:
        Settings.load({"NEARDUP_SASL_PASWORD": SECRET, "NEARDUP_OWNER": "3"})
    assert SECRET not in str(raised.value)


def test_no_setting_is_mistaken_for_a_misspelt_one() -> None:
    assert unknown_variables({variable: "" for variable, _, _ in Settings().describe()} | {FILE_VARIABLE: ""}) == []


def test_another_unknown_variable_is_logged_once_and_ignored(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        assert Settings.load({"NEARDUP_KAFKA_BROKER": SECRET, "NEARDUP_": "x"}) == Settings()
    about = [each.getMessage() for each in caplog.records if "NEARDUP_KAFKA_BROKER" in each.getMessage()]
    assert len(about) == 1
    assert "the closest one is NEARDUP_BROKER" in about[0]
    assert SECRET not in about[0]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("NEARDUP_TEST_OWNERS", "1"),
        # A Service called neardup, neardup-shard or neardup-web.
        ("NEARDUP_SERVICE_HOST", "10.0.0.1"),
        ("NEARDUP_PORT", "tcp://10.0.0.1:6066"),
        ("NEARDUP_SHARD_SERVICE_PORT", "6066"),
        ("NEARDUP_SHARD_SERVICE_PORT_METRICS", "6066"),
        ("NEARDUP_WEBS_PORT", "tcp://10.0.0.1:6066"),
        ("NEARDUP_WEB_PORT_6066_TCP", "tcp://10.0.0.1:6066"),
        ("NEARDUP_WEB_PORT_6066_TCP_ADDR", "10.0.0.1"),
        # Variables of other programs.
        ("NEARDUPES_HOME", "/opt/neardupes"),
        ("XNEARDUP_OWNERS", "1"),
    ],
)
def test_variables_of_tests_kubernetes_and_other_programs_are_accepted(variable: str, value: str) -> None:
    assert unknown_variables({variable: value}) == []


def test_every_variable_in_the_tree_is_a_setting_or_configures_the_tests() -> None:
    """A test that reads a misspelt variable would always get its default."""
    known = {variable for variable, _, _ in Settings().describe()} | {FILE_VARIABLE}
    examples = {Path(__file__), ROOT / "tests" / "test_docs.py", ROOT / "deploy" / "docs" / "references.py"}
    files = [ROOT / "Makefile", ROOT / "docker-compose.yml", *(ROOT / "deploy").rglob("*.yaml")]
    files += [path for folder in ("tests", "deploy") for path in (ROOT / folder).rglob("*.py")]
    for path in set(files) - examples:
        named = set(re.findall(r"(?<!_)NEARDUP_[A-Z_]*[A-Z]", path.read_text()))
        assert {name for name in named if not name.startswith("NEARDUP_TEST_")} <= known, path


def test_the_command_lists_unknown_variables_without_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARDUP_SASL_PASWORD", SECRET)
    done = CliRunner().invoke(main, ["settings"])
    assert done.exit_code == 1
    assert re.search(r"NEARDUP_SASL_PASWORD +\(unknown\) +not a setting; .* NEARDUP_SASL_PASSWORD", done.output)
    assert "did you mean NEARDUP_SASL_PASSWORD?" in done.output
    assert SECRET not in done.output


def test_help_and_version_work_with_invalid_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARDUP_HAMMNG", "3")
    for arguments in (["--help"], ["--version"], ["dedup", "--help"], ["settings", "--help"]):
        assert CliRunner().invoke(main, arguments).exit_code == 0
    refused = CliRunner().invoke(main, ["fingerprint", __file__])
    assert refused.exit_code == 1
    assert refused.output.startswith("Error: NEARDUP_HAMMNG: ")
    assert len(refused.output.splitlines()) == 1


WRONG = [
    ("owners", "many", "a whole number from 1 to 10000"),
    ("owners", "4.0", "a whole number from 1 to 10000"),
    ("owners", "", "a whole number from 1 to 10000"),
    ("owners", "0", "a whole number from 1 to 10000"),
    ("owners", "10001", "a whole number from 1 to 10000"),
    ("web_port", "65536", "a whole number from 1 to 65535"),
    ("compression", "LZ4", "one of none, gzip, snappy, lz4, zstd"),
    ("verdict_format", "", "one of json, msgpack"),
    ("checkpoint_seconds", "soon", "a number of seconds from 0.01 to 86400"),
    ("checkpoint_seconds", "0.001", "a number of seconds from 0.01 to 86400"),
    ("checkpoint_seconds", "nan", "a number of seconds from 0.01 to 86400"),
    ("checkpoint_seconds", "inf", "a number of seconds from 0.01 to 86400"),
    ("prefix", "", "letters, digits, dots, dashes and underscores"),
    ("prefix", "a b", "letters, digits, dots, dashes and underscores"),
    ("prefix", "a/b", "letters, digits, dots, dashes and underscores"),
    ("prefix", "x" * 101, "letters, digits, dots, dashes and underscores"),
    ("prefix", "naïve", "letters, digits, dots, dashes and underscores"),  # Kafka takes ASCII only
    ("instance", "a b", "empty or a name"),
    ("broker", "a\nb", "printable text"),
]


@pytest.mark.parametrize(("name", "text", "expected"), WRONG)
def test_the_error_on_an_invalid_value_names_the_variable_and_what_was_expected_and_found(
    name: str, text: str, expected: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        Settings.load({variable_of(name): text})
    message = str(raised.value)
    assert message.startswith(f"{variable_of(name)}: expected {expected}")
    assert message.endswith(f"got {text!r}")


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(SettingsError, match="NEARDUP_STATE: expected a path"):
        Settings.load({"NEARDUP_STATE": ""})


@pytest.mark.parametrize(
    ("line", "name", "expected"),
    [
        ('owners = "many"', "owners", "a whole number from 1 to 10000"),
        ("owners = true", "owners", "a whole number from 1 to 10000"),
        ("owners = 0", "owners", "a whole number from 1 to 10000"),
        ('checkpoint_seconds = "soon"', "checkpoint_seconds", "a number of seconds from 0.01 to 86400"),
        ('compression = "best"', "compression", "one of none, gzip, snappy, lz4, zstd"),
    ],
)
def test_a_wrong_value_in_the_file_names_the_setting(tmp_path: Path, line: str, name: str, expected: str) -> None:
    with pytest.raises(SettingsError, match=f"expected {expected}") as raised:
        Settings.load(toml(tmp_path, line))
    assert name in str(raised.value).lower()


def test_a_wrong_override_is_refused() -> None:
    with pytest.raises(SettingsError, match="NEARDUP_OWNERS: expected a whole number from 1 to 10000, got '0'"):
        Settings(owners=0)


def test_an_unknown_name_in_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"neardup\.toml: no setting is called 'ovners', did you mean 'owners'\?"):
        Settings.load(toml(tmp_path, "ovners = 5\n"))


def test_a_table_in_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        Settings.load(toml(tmp_path, "[owners]\ncount = 4\n"))


@pytest.mark.parametrize("content", [b"owners = ", b"owners 5", b"\xff\xfe"])
def test_a_file_that_is_not_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "broken.toml"
    file.write_bytes(content)
    with pytest.raises(SettingsError, match=r"NEARDUP_SETTINGS: expected a TOML file, cannot read .*broken\.toml"):
        Settings.load({FILE_VARIABLE: str(file)})


@pytest.mark.parametrize("name", ["absent.toml", "."])
def test_an_unreadable_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="NEARDUP_SETTINGS: expected a TOML file, cannot read"):
        Settings.load({FILE_VARIABLE: str(tmp_path / name)})


@pytest.mark.parametrize("name", ["sasl_password", "tls_key_password"])
def test_secrets_are_read_but_never_shown(tmp_path: Path, name: str) -> None:
    for settings in (
        Settings.load({variable_of(name): SECRET}),
        Settings.load(toml(tmp_path, f'{name} = "{SECRET}"\n')),
    ):
        assert getattr(settings, name) == SECRET
        assert SECRET not in repr(settings)
        assert SECRET not in str(settings)
        assert SECRET not in str(settings.describe())
        assert (variable_of(name), "(secret)") in [(variable, value) for variable, value, _ in settings.describe()]


def test_an_absent_secret_is_described_as_empty() -> None:
    assert ("NEARDUP_SASL_PASSWORD", "") in [(variable, value) for variable, value, _ in Settings().describe()]


def whole_text(error: BaseException | None) -> str:
    """Return the text of an error and its causes as in a traceback."""
    return "" if error is None else f"{error!r} {error}" + whole_text(error.__cause__ or error.__context__)


@pytest.mark.parametrize("name", ["sasl_password", "tls_key_password"])
@pytest.mark.parametrize("value", [SECRET + "\n", "\x00" + SECRET])
def test_a_wrong_secret_is_not_in_the_error(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=variable_of(name)) as raised:
        Settings.load({variable_of(name): value})
    assert SECRET not in whole_text(raised.value)


@pytest.mark.parametrize("line", [f'sasl_password = "{SECRET}', f'sasl_password = {SECRET}"', f'x = "{SECRET}"'])
def test_a_secret_in_a_broken_file_is_not_in_the_error(tmp_path: Path, line: str) -> None:
    with pytest.raises(SettingsError) as raised:
        Settings.load(toml(tmp_path, line))
    assert SECRET not in whole_text(raised.value)


def test_settings_cannot_be_changed() -> None:
    settings: Any = Settings()
    with pytest.raises(FrozenInstanceError):
        settings.owners = 5


def test_file_and_environment_override_a_preset(tmp_path: Path) -> None:
    assert Settings.load({}, preset="default") == Settings()
    assert Settings.load({}, preset="thorough").bands == "25x5"
    assert Settings.load(toml(tmp_path, 'bands = "21x6"'), preset="thorough").bands == "21x6"
    assert Settings.load({"NEARDUP_BANDS": "18x7"}, preset="thorough").bands == "18x7"
    assert Settings.load({}, preset="thorough", bands="none").bands == "none"


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_a_plan(name: str) -> None:
    assert plan_of(Settings.load({}, preset=name)).partitions > 0


def test_an_unknown_preset() -> None:
    with pytest.raises(SettingsError, match="expected one of fast, default, thorough, got 'best'"):
        Settings.load({}, preset="best")
