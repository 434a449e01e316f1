"""Tests of the kernels of codecs: any start position and any number of steps give back the encoded values."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.index import elias_fano, huffman
from tests.support.fingerprints import fingerprints, words

BITS = st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 64)), max_size=40)
RUBBISH = np.uint64(0xDEADBEEF12345678)
"""Initial content of unwritten memory."""


@given(BITS)
def test_fields_of_any_width_are_read_back(fields: list[tuple[int, int]]) -> None:
    packed = np.zeros(len(fields) + 2, np.uint64)
    at = 0
    for value, width in fields:
        elias_fano.put_bits(packed, np.uint64(at), np.uint64(value & (1 << width) - 1), np.uint64(width))
        at += width
    at = 0
    for value, width in fields:
        assert int(elias_fano.get_bits(packed, np.uint64(at), np.uint64(width))) == value & (1 << width) - 1
        at += width


@given(fingerprints(200), st.integers(0, 8), st.integers(1, 12), st.integers(1, 50))
def test_elias_fano_decodes_what_was_encoded_in_steps(values: list[int], skip: int, upper_bits: int, step: int) -> None:
    prefix = 0xA5 << 56 & (2**64 - 1 ^ 2**64 - 1 >> skip)
    keys = words(sorted({prefix | value >> skip for value in values}))
    lower = np.full(keys.size + 2, RUBBISH)
    upper = np.full((keys.size + (1 << upper_bits)) // 64 + 2, RUBBISH)
    samples = np.empty((1 << upper_bits) // elias_fano.SAMPLE + 1, np.uint32)
    for start in range(0, keys.size, step):
        elias_fano.encode(keys, start, min(keys.size, start + step), skip, upper_bits, lower, upper, samples)
    encoded = elias_fano.EncodedKeys(lower, upper, samples, np.uint64(prefix), skip, upper_bits)
    out = np.empty(keys.size, np.uint64)
    place = 0
    for start in range(0, keys.size, step):
        stop = min(keys.size, start + step)
        place = elias_fano.decode(encoded, start, stop, place, out[start:stop])
    assert out.tolist() == keys.tolist()
    assert int(np.bitwise_count(upper).sum()) == keys.size
    uppers = [(key << skip & 2**64 - 1) >> (64 - upper_bits) for key in keys.tolist()]
    for value in {*uppers, 0, (1 << upper_bits) - 1}:
        # The position counts the keys with a smaller upper part, and one 0 bit per smaller upper part.
        before = sum(each < value for each in uppers) + value
        assert int(elias_fano.begin_of(upper, samples, np.uint64(value))) == before


@given(st.lists(st.integers(0, 10**6), min_size=64, max_size=64))
def test_huffman_codes_are_prefix_free_and_optimal(counts: list[int]) -> None:
    lengths = huffman.code_lengths(np.array(counts, np.int64))
    used = [symbol for symbol in range(64) if counts[symbol]]
    assert [symbol for symbol in range(64) if lengths[symbol]] == used
    if len(used) > 1:
        assert sum(2.0 ** -int(lengths[symbol]) for symbol in used) == 1.0
        assert sum(counts[symbol] * int(lengths[symbol]) for symbol in used) == _least_bits(counts)
    codes, peeks = huffman.canonical_codes(lengths)
    written = [f"{int(codes[symbol]):0{lengths[symbol]}b}" for symbol in used]
    assert not any(one != other and other.startswith(one) for one in written for other in written)
    for symbol, code in zip(used, written, strict=True):
        if len(code) <= huffman.PEEK:
            assert peeks[int(code.ljust(huffman.PEEK, "0"), 2)] == symbol * 64 + len(code)


def _least_bits(counts: list[int]) -> int:
    """Return the length of an optimal code: each step of Huffman's algorithm adds the two smallest weights."""
    weights, total = sorted(count for count in counts if count), 0
    while len(weights) > 1:
        joined = weights[0] + weights[1]
        total += joined
        weights = sorted([joined, *weights[2:]])
    return total


@given(fingerprints(400), st.integers(1, 90), st.integers(0, 40))
def test_huffman_decodes_what_was_encoded_in_steps(values: list[int], step: int, spread: int) -> None:
    # Values are spread out or close together, for short and long codes, and one block or many.
    keys = words(sorted({value >> spread for value in values}))
    counts = np.zeros(64, np.int64)
    huffman.count_positions(keys, 0, keys.size, counts)
    lengths = huffman.code_lengths(counts)
    code = huffman.Code(lengths, *huffman.canonical_codes(lengths))
    blocks = keys.size // 50 + 2
    packed = np.full(blocks * huffman.BLOCK_WORDS + 2, RUBBISH)
    last_keys, sizes = np.zeros(blocks, np.uint64), np.full(blocks, 9, np.uint16)
    encoded = huffman.Blocks(packed, last_keys, sizes)
    block = bit = 0
    for start in range(0, keys.size, step):
        stop = min(keys.size, start + step)
        reached, block, bit = huffman.encode(keys, start, stop, code, encoded, block, bit)
        assert reached == stop
    out = np.empty(keys.size, np.uint64)
    assert huffman.decode_blocks(encoded, 0, block, code, out) == keys.size
    assert out.tolist() == keys.tolist()
    ends = np.cumsum(sizes[: block + 1], dtype=np.int64)
    assert last_keys[: block + 1].tolist() == keys[ends - 1].tolist()
