import numpy as np
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.common import hashing, murmur
from tests.support import naive

WORDS = st.lists(st.integers(0, 2**64 - 1), max_size=20)
SEEDS = st.integers(0, 2**64 - 1)


@given(st.binary(max_size=200), st.integers(0, 40), SEEDS)
def test_hashes_of_bytes_equal_those_of_the_library(data: bytes, skipped: int, seed: int) -> None:
    array = np.frombuffer(data, dtype=np.uint8)
    start = min(skipped, len(data))
    comp = hashing.hash_bytes(array, start, len(data), np.uint64(seed))
    assert int(comp) == xxhash.xxh64_intdigest(data[start:], seed=seed)


@given(WORDS, SEEDS)
def test_hashes_of_words_equal_those_of_their_bytes(words: list[int], seed: int) -> None:
    comp = hashing.hash_words(np.array(words, dtype=np.uint64), 0, len(words), np.uint64(seed))
    assert int(comp) == naive.xxh64(naive.pack(words), seed)


@given(st.lists(st.tuples(st.binary(max_size=60), SEEDS), max_size=40))
def test_hashes_of_slices_equal_those_of_each_slice(slices: list[tuple[bytes, int]]) -> None:
    data = np.frombuffer(b"".join(each for each, _ in slices), dtype=np.uint8)
    ends = np.cumsum([0, *(len(each) for each, _ in slices)]).astype(np.int64)
    comp = hashing.hash_slices(data, ends, np.array([seed for _, seed in slices], dtype=np.uint64))
    assert comp.tolist() == [naive.xxh64(each, seed) for each, seed in slices]


@given(WORDS, SEEDS)
def test_each_word_is_hashed_independently(words: list[int], seed: int) -> None:
    comp = hashing.hash_each(np.array(words, dtype=np.uint64), np.uint64(seed))
    assert comp.tolist() == [naive.xxh64(naive.pack([word]), seed) for word in words]


@given(st.binary(max_size=60), st.integers(0, 20))
def test_hashes_of_tokens_equal_those_of_the_library(data: bytes, skipped: int) -> None:
    start = min(skipped, len(data))
    array = np.frombuffer(data + b"x" * murmur.SLACK, dtype=np.uint8)
    assert int(murmur.hash_token(array, start, len(data))) == naive.murmur3(data[start:])


@given(st.lists(st.binary(max_size=40), max_size=300))
def test_hashes_of_many_tokens_equal_those_of_each_token(tokens: list[bytes]) -> None:
    data = np.frombuffer(b"".join(tokens) + b"x" * murmur.SLACK, dtype=np.uint8)
    ends = np.cumsum([len(token) for token in tokens]).astype(np.int32)
    starts = ends - np.array([len(token) for token in tokens], dtype=np.int32)
    assert murmur.hash_tokens(data, starts, ends).tolist() == [naive.murmur3(token) for token in tokens]


def test_published_vectors() -> None:
    empty = np.zeros(0, dtype=np.uint8)
    abc = np.frombuffer(b"abc", dtype=np.uint8)
    assert int(hashing.hash_bytes(empty, 0, 0, np.uint64(0))) == 0xEF46DB3751D8E999
    assert int(hashing.hash_bytes(abc, 0, 3, np.uint64(0))) == 0x44BC2CF5AD770999
