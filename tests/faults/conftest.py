import pytest

from neardup.sample import sample_crawl
from tests.faults import results
from tests.faults.in_process import Stream

PAGES = [made.page for made in sample_crawl(120, seed=31, mean_bytes=8000)]
HALF = len(PAGES) // 2


@pytest.fixture(scope="session")
async def half_way(tmp_path_factory: pytest.TempPathFactory) -> Stream:
    """Provide a stream that has processed half of the pages in three starts, so that RocksDB has written tables."""
    stream = Stream(tmp_path_factory.mktemp("stream") / "state")
    for start in range(0, HALF, HALF // 3):
        await stream.take(PAGES[start : start + HALF // 3])
    return stream


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the measurements as rows of a table."""
    if lines := results.lines():
        terminalreporter.section("measured")
        for line in lines:
            terminalreporter.write_line(line)
