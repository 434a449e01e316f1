"""Tests of `neardup recluster` after each day, with and without Ctrl-C."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from neardup.messages.settled import Settled, read_batch, write_documents
from neardup.offline.corpus.corpus import Corpus, CorpusFile
from neardup.types import Page
from neardup_services.cli import main
from tests.offline.by_hand import SIGNATURES, document_of
from tests.services.workers import BIN
from tests.support.corpus_files import write_file
from tests.support.documents import text_of


def page_of(number: int, story: int, changed: int) -> Page:
    """Return a page of a story. The last `changed` words differ from those of the other pages."""
    words = text_of(story, 300)
    words[300 - changed :] = text_of(1000 + number, changed)
    return Page(f"http://{story}.example/{number}", html=("<p>" + " ".join(words)).encode())


def write_day(corpus: Corpus, day: int, pages: int = 60) -> None:
    """Write stories with four pages each, of which the stream has not found any to be near."""
    numbers = range(day * pages, (day + 1) * pages)
    documents = [document_of(number, page_of(number, number // 4, 5 * (number % 4))) for number in numbers]
    settled = [Settled(document, None) for document in documents]
    batches = [read_batch(value) for value in write_documents(settled, SIGNATURES.version)]
    write_file(corpus, CorpusFile(0, day, day), batches)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    write_day(Corpus(str(tmp_path / "state" / "corpus")), 0)
    return tmp_path / "state"


def recluster(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["recluster", *map(str, arguments)])


def summary_of(*arguments: object) -> Any:
    done = recluster("--json", *arguments)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_each_day_adds_to_the_clusters(state: Path) -> None:
    summary = summary_of("--state", state)
    assert (summary["documents"], summary["new_documents"], summary["clusters"]) == (60, 60, 15)
    write_day(Corpus(str(state / "corpus")), 1)
    summary = summary_of("--state", state)
    assert (summary["documents"], summary["new_documents"], summary["clusters"]) == (120, 60, 30)
    assert summary_of("--state", state)["new_documents"] == 0
    assert summary_of("--state", state, "--full")["new_documents"] == 120
    found = CliRunner().invoke(main, ["lookup", "http://1.example/5", "--state", str(state), "--json"])
    assert found.exit_code == 0, found.output
    assert "http://1.example/4" in found.stdout


def test_the_summary_is_printed_and_written_as_html(state: Path, tmp_path: Path) -> None:
    done = recluster("--corpus", state / "corpus", "--out", tmp_path / "out", "--report", tmp_path / "report.html")
    assert done.exit_code == 0, done.output
    assert "60 documents (60 new): 15 clusters" in done.stdout
    assert "<html" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "out" / "clusters.parquet").exists()
    assert json.loads((tmp_path / "out" / "report.json").read_text())["clusters"] == 15


def test_other_sources_need_a_full_run(state: Path) -> None:
    recluster("--state", state)
    refused = recluster("--state", state, "--sources", "bands")
    assert refused.exit_code == 1
    assert "pair_sources: expected ['shingles', 'hamming'], got ['bands']" in refused.output
    assert summary_of("--state", state, "--sources", "bands+supers", "--full")["pairs"].keys() == {"bands", "supers"}


def test_invalid_requests_are_clear_errors(tmp_path: Path, state: Path) -> None:
    empty = recluster("--state", tmp_path / "nothing")
    assert empty.exit_code == 1
    assert "expected the files of a corpus, found none" in empty.output
    unknown = recluster("--state", state, "--sources", "guesses")
    assert unknown.exit_code == 1
    assert "NEARDUP_PAIR_SOURCES: expected one or more of shingles" in unknown.output


def test_spark_without_pyspark_is_an_error_that_names_the_package(state: Path, tmp_path: Path) -> None:
    (tmp_path / "pyspark.py").write_text("raise ImportError('none here')")
    command = [str(BIN / "neardup"), "recluster", "--state", str(state), "--engine", "spark"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "got: none here; install it with pip install 'neardup[spark]'" in done.stderr


def test_a_pass_resumes_after_ctrl_c(state: Path) -> None:
    corpus = Corpus(str(state / "corpus"))
    command = [str(BIN / "neardup"), "recluster", "--state", str(state)]
    process = subprocess.Popen(command, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (state / "clusters" / "work" / "copies").exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    # The pass may have ended before the signal.
    assert process.returncode in (130, 0)
    assert process.returncode == 0 or "run the command again to resume" in error
    write_day(corpus, 1)
    assert summary_of("--state", state)["clusters"] == 30
