from array import array
from pathlib import Path

import pytest

from neardup.errors import StateUnavailable, WrongPlan
from neardup.log import PlainRecord
from neardup.messages.forgotten import write_forgotten
from neardup.messages.settled import Settled, write_documents
from neardup.offline.corpus import archive
from neardup.offline.corpus.archive import Archive
from neardup.offline.corpus.columns import gather
from neardup.offline.corpus.corpus import Corpus, CorpusFile
from tests.offline.corpora import SIGNATURES, batches
from tests.support.documents import document


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def record(offset: int, signature_version: str = SIGNATURES, count: int = 1) -> PlainRecord:
    """Return a message with one document whose number is the offset, or with `count` documents."""
    settled = [Settled(document(offset * 100 + number, offset), None) for number in range(count)]
    (value,) = write_documents(settled, signature_version)
    return PlainRecord("t.documents", 2, offset, 0, None, value, ())


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(str(tmp_path / "corpus"))


def opened(corpus: Corpus, tmp_path: Path, clock: Clock | None = None) -> tuple[Archive, int | None]:
    stage = Archive(corpus, partition=2, signature_version=SIGNATURES, longest_seconds=60, clock=clock or Clock())
    return stage, stage.open(tmp_path / "state")


def test_missing_records_are_no_reason_to_delete_the_corpus(corpus: Corpus, tmp_path: Path) -> None:
    stage, _ = opened(corpus, tmp_path)
    advice = stage.after_gap(tmp_path / "state", "t.recluster")
    assert "NEARDUP_CORPUS" in advice
    assert "delete" not in advice


def test_documents_are_buffered_until_the_interval_ends(corpus: Corpus, tmp_path: Path) -> None:
    clock = Clock()
    stage, start = opened(corpus, tmp_path, clock)
    assert start == 0
    assert stage.process([record(0), record(1)]).waves == ()
    assert stage.checkpoint() == 0
    assert corpus.files() == []
    clock.now += 60
    stage.process([record(2)])
    assert stage.checkpoint() == 3
    assert corpus.files() == [CorpusFile(2, 0, 2)]


def test_a_restart_resumes_after_the_records_in_the_corpus(corpus: Corpus, tmp_path: Path) -> None:
    clock = Clock()
    stage, _ = opened(corpus, tmp_path, clock)
    stage.process([record(0), record(1)])
    clock.now += 60
    stage.checkpoint()
    stage.process([record(2)])  # followed by a crash
    again, start = opened(corpus, tmp_path, clock)
    assert start == 2
    again.process([record(2), record(3)])
    clock.now += 60
    assert again.checkpoint() == 4
    assert corpus.files() == [CorpusFile(2, 0, 1), CorpusFile(2, 2, 3)]
    assert len(gather(corpus, tmp_path / "gathered")) == 4


def test_forgotten_documents_are_stored_in_separate_files(corpus: Corpus, tmp_path: Path) -> None:
    clock = Clock()
    stage, _ = opened(corpus, tmp_path, clock)
    (one,) = write_forgotten(array("q", [5, 0, 1, 6, 0, 2]))
    (other,) = write_forgotten(array("q", [7, 1, 1]))
    orders = [PlainRecord("t.documents", 2, offset, 0, None, value, ()) for offset, value in ((1, one), (2, other))]
    stage.process([record(0), *orders, record(3)])
    clock.now += 60
    assert stage.checkpoint() == 4
    assert corpus.files() == [CorpusFile(2, 0, 0), CorpusFile(2, 3, 3)]
    assert corpus.forgotten().documents.tolist() == [[5, 0, 1], [6, 0, 2], [7, 1, 1]]
    # The last record is an order. A restart resumes after it and reads the unpublished documents again.
    orders = [PlainRecord("t.documents", 2, 4, 0, None, one, ())]
    stage.process(orders)
    again, start = opened(corpus, tmp_path, clock)
    assert start == 4
    again.process(orders)
    clock.now += 60
    assert again.checkpoint() == 5
    assert opened(corpus, tmp_path, clock)[1] == 5


def test_large_files_are_prepared_immediately_and_published_with_the_checkpoint(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "FILE_BYTES", 10_000)
    stage, _ = opened(corpus, tmp_path)
    stage.process([record(0, count=20), record(1, count=20), record(2)])
    assert corpus.files() == []
    # The last file stays open: a restart reads its records again.
    assert stage.checkpoint() == 2
    assert corpus.files() == [CorpusFile(2, 0, 0), CorpusFile(2, 1, 1)]
    _, start = opened(corpus, tmp_path)
    assert start == 2


def test_prepared_files_that_were_not_published_are_removed_after_a_restart(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "FILE_BYTES", 1)
    stage, _ = opened(corpus, tmp_path)
    stage.process([record(0)])
    _, start = opened(corpus, tmp_path)
    assert start == 0
    assert list((tmp_path / "corpus").iterdir()) == []


def test_unusable_messages_are_rejected_and_the_others_are_processed(corpus: Corpus, tmp_path: Path) -> None:
    clock = Clock()
    stage, _ = opened(corpus, tmp_path, clock)
    poison = PlainRecord("t.documents", 2, 1, 0, None, b"no message", ())
    waves = stage.process([record(0), poison, record(2, "nd2"), record(3), poison._replace(offset=4)])
    assert [each.record.offset for each in waves.rejected] == [1, 2, 4]
    assert isinstance(waves.rejected[1].error, WrongPlan)
    assert "expected documents with signatures nd1, got nd2" in str(waves.rejected[1].error)
    clock.now += 60
    assert stage.checkpoint() == 5
    assert len(gather(corpus, tmp_path / "gathered")) == 2


def test_the_offset_advances_past_rejected_messages(corpus: Corpus, tmp_path: Path) -> None:
    stage, _ = opened(corpus, tmp_path)
    stage.process([PlainRecord("t.documents", 2, 0, 0, None, b"no message", ())])
    assert stage.checkpoint() == 1
    assert corpus.files() == []


def test_a_replaced_worker_publishes_nothing(tmp_path: Path) -> None:
    """Its successor removes the prepared file and reads the same documents itself."""
    corpus = Corpus(str(tmp_path))
    file = CorpusFile(0, 0, 0)
    corpus.prepare(file, batches([document(0, 1)]))
    corpus.discard_prepared(0)
    with pytest.raises(StateUnavailable, match="another worker has taken over the partition"):
        corpus.publish(file)
    assert corpus.files() == []
