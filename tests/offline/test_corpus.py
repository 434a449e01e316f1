import json
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import CorruptState, WrongState
from neardup.matching.found_by import found_by_table
from neardup.matching.match import RELATIONS, Match
from neardup.messages.settled import Settled
from neardup.offline.corpus.columns import UNIQUE, ColumnStore, gather
from neardup.offline.corpus.corpus import Corpus, CorpusFile
from neardup.offline.corpus.document_ids import DocumentIdSet
from neardup.types import DocumentId, Relation
from tests.offline.corpora import SIGNATURES, add, batches, corpus_of
from tests.support.corpus_files import write_file
from tests.support.documents import document

MATCH = Match(
    id=DocumentId(0, 0, 0),
    url="http://0.example/0",
    relation=Relation.NEAR,
    hamming=2,
    resemblance=0.8,
    containment=0.9,
    found_by=found_by_table(0),
    group=DocumentId(0, 0, 0),
    group_url="u",
)


def test_a_document_is_read_back_unchanged(tmp_path: Path) -> None:
    some = [document(0, 1, fingerprint=2**64 - 1, url="http://ü.example/"), document(1, 2, note="cut: bytes")]
    documents = gather(corpus_of(tmp_path / "corpus", [some[0], Settled(some[1], MATCH)]), tmp_path / "gathered")
    assert len(documents) == 2
    for row, each in enumerate(some):
        assert documents.document(row) == each.id
        assert documents.url(row) == each.url
        assert documents.fetched_at(row) == each.fetched_at
        assert int(documents.fingerprint[row]) == each.fingerprint
        assert documents.size[row] == each.size
        assert documents.sketch(row).tolist() == each.sketch.tolist()
        three = each.checksums
        assert documents.checksums[row].tobytes() == three.content + three.tokens + three.shingles
    assert documents.relation.tolist() == [UNIQUE, RELATIONS.index(Relation.NEAR)]
    assert documents.match[1].tolist() == list(MATCH.id)


def test_other_readers_of_parquet_see_plain_columns(tmp_path: Path) -> None:
    file = add(corpus := Corpus(str(tmp_path)), [document(0, 1, fingerprint=2**63)])
    table = pyarrow.parquet.read_table(tmp_path / file.name)
    assert table.column("url").to_pylist() == ["http://0.example/0"]
    assert table.column("fingerprint").to_pylist() == [-(2**63)]
    assert table.column("relation").to_pylist() == [None]
    # Spark cannot read unsigned 64-bit integers.
    assert not [field for field in table.schema if pyarrow.types.is_unsigned_integer(field.type)]
    assert corpus.signature_version(file) == SIGNATURES


def test_a_file_written_again_replaces_the_first(tmp_path: Path) -> None:
    corpus = Corpus(str(tmp_path))
    add(corpus, [document(0, 1), document(1, 2)])
    add(corpus, [document(0, 1), document(1, 2)])
    assert corpus.files() == [CorpusFile(0, 0, 1)]


def test_a_prepared_file_is_not_part_of_the_corpus_until_it_is_published(tmp_path: Path) -> None:
    corpus, file = Corpus(str(tmp_path)), CorpusFile(3, 10, 19)
    corpus.prepare(file, batches([document(0, 1)]))
    assert corpus.files() == []
    assert corpus.end(3) == 0
    corpus.publish(file)
    assert corpus.files() == [file]
    assert corpus.end(3) == 20
    assert corpus.end(2) == 0
    corpus.prepare(CorpusFile(3, 20, 29), batches([document(0, 1)]))
    corpus.prepare(CorpusFile(4, 20, 29), batches([document(0, 1)]))
    corpus.discard_prepared(3)
    assert [path.name for path in tmp_path.glob(".*")] == ["." + CorpusFile(4, 20, 29).name + ".new"]


def test_an_address_that_is_not_a_folder_works_like_one(tmp_path: Path) -> None:
    corpus = Corpus("memory://somewhere/corpus")
    assert corpus.files() == []
    add(corpus, [document(0, 1)])
    assert len(gather(corpus, tmp_path)) == 1


def test_files_that_are_not_part_of_a_corpus_are_refused(tmp_path: Path) -> None:
    corpus, file = Corpus(str(tmp_path)), CorpusFile(0, 0, 0)
    (tmp_path / "notes.txt").write_text("not ours")
    assert corpus.files() == []
    (tmp_path / file.name).write_bytes(b"PAR1 but not really")
    with pytest.raises(CorruptState, match="expected a file of a corpus"):
        list(corpus.read(file))
    pyarrow.parquet.write_table(pyarrow.table({"url": ["u"]}), tmp_path / file.name)
    with pytest.raises(WrongState, match="expected version 1 of a corpus, got none"):
        corpus.signature_version(file)


def test_rows_keep_their_numbers_when_more_documents_are_gathered(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path / "corpus", [document(5, 5), document(6, 6)])
    first = gather(corpus, tmp_path / "gathered")
    before = [first.document(row) for row in range(len(first))]
    # The document is earlier in the order of all pages, and later in the corpus.
    add(corpus, [document(1, 1), document(9, 9)], first=2)
    documents = gather(corpus, tmp_path / "gathered")
    assert [documents.document(row) for row in range(2)] == before
    assert documents.order.tolist() == [2, 0, 1, 3]
    assert documents.rank.tolist() == [1, 2, 0, 3]
    assert documents.sketch(3).tolist() == document(9, 9).sketch.tolist()


def test_a_document_that_the_stream_sent_twice_is_gathered_once(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path / "corpus", [document(0, 1), document(1, 2), document(0, 1)])
    add(corpus, [document(1, 2), document(2, 3)], first=7)
    documents = gather(corpus, tmp_path / "gathered")
    assert [documents.document(row).offset for row in range(len(documents))] == [0, 1, 2]


def test_interrupted_gathering_is_repeated(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path / "corpus", [document(0, 1)])
    gather(corpus, tmp_path / "gathered")
    for path in (tmp_path / "gathered").iterdir():
        if path.suffix != ".json":
            with path.open("ab") as file:
                file.write(b"half a row")
    add(corpus, [document(1, 2)], first=1)
    documents = gather(corpus, tmp_path / "gathered")
    assert [documents.url(row) for row in range(2)] == ["http://0.example/0", "http://0.example/1"]
    assert documents.sketch(1).tolist() == document(1, 2).sketch.tolist()


def test_signatures_of_two_versions_are_not_mixed(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path / "corpus", [document(0, 1)])
    write_file(corpus, CorpusFile(0, 1, 1), batches([document(1, 2)], "nd2"))
    with pytest.raises(WrongState, match="expected signatures nd1, got nd2"):
        gather(corpus, tmp_path / "gathered")


def test_a_damaged_directory_is_a_clear_error(tmp_path: Path) -> None:
    gather(corpus_of(tmp_path / "corpus", [document(0, 1)]), tmp_path / "gathered")
    (tmp_path / "gathered" / "fingerprint").write_bytes(b"1234567")
    with pytest.raises(CorruptState, match=r"expected 8 bytes, got fewer; delete .* to rebuild it"):
        ColumnStore(tmp_path / "gathered")
    (tmp_path / "gathered" / "gathered.json").write_text(json.dumps({"version": 7}))
    with pytest.raises(WrongState, match="expected version 2, got 7"):
        ColumnStore(tmp_path / "gathered")


def test_an_empty_corpus_has_no_documents(tmp_path: Path) -> None:
    documents = gather(Corpus(str(tmp_path / "corpus")), tmp_path / "gathered")
    assert len(documents) == 0
    assert documents.words.dtype == np.uint64


@given(st.lists(st.lists(st.tuples(*[st.integers(0, 2)] * 3), max_size=8), max_size=8), st.integers(0, 8))
def test_each_id_is_taken_once(made: list[list[tuple[int, int, int]]], before: int) -> None:
    listed = [np.array(batch, np.int64).reshape(-1, 3) for batch in made]
    known = DocumentIdSet(np.concatenate([np.empty((0, 3), np.int64), *listed[:before]]))
    seen = {each for batch in made[:before] for each in batch}
    for batch, ids in zip(made[before:], listed[before:], strict=True):
        expected = []
        for place, each in enumerate(batch):
            if each not in seen:
                expected.append(place)
            seen.add(each)
        assert known.add_new(ids).tolist() == expected
