import pytest

from tests.faults import results


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was measured, as rows of a table."""
    if said := results.lines():
        terminalreporter.section("measured")
        for line in said:
            terminalreporter.write_line(line)
