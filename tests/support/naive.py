"""Slow, obvious twins of every kernel. They share only the frozen character tables with the code that they check."""

import math
import struct
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from itertools import count as counting
from math import prod
from typing import Any

import mmh3
import xxhash
from selectolax.lexbor import LexborHTMLParser, LexborNode

from neardup.kernels.text import markup
from neardup.text.generate_unicode_tables import IGNORABLE, MARK, SEPARATOR, UNSPACED, WORD, canonical, class_of
from neardup.text.unicode_tables import element_flags

MASK = 2**64 - 1


def xxh64(data: bytes, seed: int = 0) -> int:
    """Compute XXH64 with the reference library."""
    return xxhash.xxh64_intdigest(data, seed=seed)


def mixed(key: int) -> int:
    """Apply the last step of XXH64 to one word."""
    key = (key ^ key >> 33) * 0xC2B2AE3D27D4EB4F & MASK
    key = (key ^ key >> 29) * 0x165667B19E3779F9 & MASK
    return key ^ key >> 32


def unmixed(key: int) -> int:
    """Invert `mixed` by undoing each step in reverse order. A right shift is undone from the highest bit down."""
    for shift, factor in ((32, 0x165667B19E3779F9), (29, 0xC2B2AE3D27D4EB4F), (33, 1)):
        for at in range(63 - shift, -1, -1):
            key ^= (key >> at + shift & 1) << at
        key = key * pow(factor, -1, 2**64) & MASK
    return key


def murmur3(data: bytes) -> int:
    """Compute MurmurHash3 with the reference library."""
    first: int = mmh3.hash64(data, signed=False)[0]
    return first


def pack(words: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(words)}Q", *words)


def announced_items(data: bytes) -> int:
    """Return the number of items that msgpack lists and maps announce in the valid prefix. A map entry counts two."""
    skipped = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
    skipped |= {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}
    lengths = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
    counts = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}
    total = 0
    while data:
        first, data = data[0], data[1:]
        if 0x80 <= first <= 0x8F:
            total += 2 * (first & 0x0F)
        elif 0x90 <= first <= 0x9F:
            total += first & 0x0F
        elif 0xA0 <= first <= 0xBF:
            data = data[first & 0x1F :]
        elif first in skipped:
            data = data[skipped[first] :]
        elif first in lengths and len(data) >= lengths[first]:
            length = int.from_bytes(data[: lengths[first]])
            data = data[lengths[first] + (0xC7 <= first <= 0xC9) + length :]
        elif first in counts and len(data) >= counts[first][0]:
            size, of_each = counts[first]
            total += of_each * int.from_bytes(data[:size])
            data = data[size:]
        elif 0x80 <= first <= 0xDF:
            break
    return total


def ascii_block(block: bytes) -> tuple[bytes, int, int]:
    """Return the block in lower case, the mask of letters and digits, and the mask of bytes that are not ASCII."""
    words = sum(1 << i for i, byte in enumerate(block) if chr(byte).isascii() and chr(byte).isalnum())
    return block.lower(), words, sum(1 << i for i, byte in enumerate(block) if byte >= 0x80)


def canonical_tokens(data: bytes, ngram: int) -> list[str]:
    """Tokenize a text: fold and decompose every character, order the combining marks, and split."""
    pieces = [piece for char in data.decode("utf-8", "replace") for piece in _pieces(char)]
    tokens: list[str] = []
    run: list[str] = []  # units: a character with its marks
    kind = SEPARATOR

    def end() -> None:
        if kind == WORD:
            tokens.append("".join(run))
        elif kind == UNSPACED:
            tokens.extend(["".join(run[i : i + ngram]) for i in range(max(len(run) - ngram, 0) + 1)])
        run.clear()

    for piece in pieces:
        what = class_of(ord(piece))
        if what == MARK:
            if kind != SEPARATOR:
                run[-1] = _with_mark(run[-1], piece)
            continue
        if what != kind:
            end()
            kind = what
        if what != SEPARATOR:
            run.append(piece)
    end()
    return tokens


def _pieces(char: str) -> str:
    return "" if class_of(ord(char)) == IGNORABLE else canonical(ord(char))


def _with_mark(unit: str, mark: str) -> str:
    rank = unicodedata.combining(mark)
    place = len(unit)
    if rank:
        while place and len(unit) - place < 30 and unicodedata.combining(unit[place - 1]) > rank:
            place -= 1
    return unit[:place] + mark + unit[place:]


def ngrams(hashes: Sequence[int], n: int) -> list[int]:
    if n == 1:
        return list(hashes)
    return [xxh64(pack(hashes[i : i + n])) for i in range(len(hashes) - n + 1)]


def distinct(values: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(values))


def counted(values: Sequence[int]) -> dict[int, int]:
    return dict(Counter(values))


def spots(tokens: Sequence[int], stop: Sequence[bool], distance: int, chain: int) -> list[int]:
    found = []
    for i, token in enumerate(tokens):
        if stop[i]:
            rest = [other for other, stops in zip(tokens[i + 1 :], stop[i + 1 :], strict=True) if not stops]
            words = rest[distance - 1 :: distance][:chain]
            if len(words) == chain:
                found.append(xxh64(pack([token, *words])))
    return found


def votes(hashes: Sequence[int], weights: Sequence[int], width: int) -> list[int]:
    """Compute the votes per bit (Sood 2011, Algorithm 1, lines 1 to 11)."""
    sums = [0] * width
    for feature, weight in zip(hashes, weights, strict=True):
        bits = feature | xxh64(pack([feature]), 1) << 64
        for j in range(width):
            sums[j] += weight if bits >> j & 1 else -weight
    return sums


def simhash(sums: Sequence[int]) -> int:
    """Compute the fingerprint from the votes (Sood 2011, Algorithm 1, lines 12 to 19)."""
    return sum(1 << j for j, weight in enumerate(sums) if weight >= 0)


def smallest(values: Sequence[int], s: int) -> list[int]:
    return sorted(values)[:s]


def divisible(values: Sequence[int], i: int) -> list[int]:
    return sorted(value for value in values if value % 2**i == 0)


def one_permutation(values: Sequence[int], m: int) -> list[int]:
    """Compute one-permutation hashing: the minimum of each bin, with empty bins densified."""
    full: dict[int, int] = {}
    for value in values:
        place, rest = (value >> 32) * m >> 32, min(value & 0xFFFFFFFF, 0xFFFFFFFE)
        full[place] = min(full.get(place, rest), rest)
    if not full:
        return [0xFFFFFFFF] * m
    return [full[_first_full(i, m, full)] for i in range(m)]


def _first_full(i: int, m: int, full: dict[int, int]) -> int:
    place = i
    for step in counting(1):
        if place in full:
            break
        place = (xxh64(pack([i << 32 | step]), 2) >> 32) * m >> 32
    return place


def mips(values: Sequence[int], m: int) -> list[int]:
    """Compute the minimum under each of m independent permutations (lecture V.5.3)."""
    return [min(xxh64(pack([value]), 1000 + i) for value in values) for i in range(m)]


def group_keys(values: Sequence[int], k: int, s: int) -> list[int]:
    return [xxh64(pack([group, *values[group * s : group * s + s]]), 3) for group in range(k)]


def acceptance(k: int, s: int, r: int, x: float) -> float:
    """Return the acceptance probability of the filter (Broder 2000 §3)."""
    return sum(math.comb(k, i) * x ** (s * i) * (1 - x**s) ** (k - i) for i in range(r, k + 1))


def visible_text(html: bytes) -> str:
    """Extract the visible text by a walk over the tree of an HTML5 parser."""
    root = LexborHTMLParser(html).root
    out: list[str] = []
    if root is not None:
        _walk(root, out)
    return "".join(out)


def _walk(node: LexborNode, out: list[str]) -> None:
    flags_of = element_flags()
    # An explicit stack: None marks the end of an element's children.
    todo: list[Any] = [node]
    while todo:
        current = todo.pop()
        if isinstance(current, str):
            out.append(current)
            continue
        if current.is_text_node:
            out.append(current.text_content or "")
            continue
        if not current.is_element_node:
            continue
        flags = flags_of.get(current.tag, markup.BREAK)
        if flags & (markup.RAW | markup.DROP) or _is_hidden(current):
            out.append("\n" if flags & markup.BREAK else "")
            continue
        separator = "\n" if flags & markup.BREAK else ""
        out.append(separator)
        todo.append(separator)
        todo.extend(reversed(list(current.iter(include_text=True))))


def _is_hidden(node: LexborNode) -> bool:
    style = "".join((node.attributes.get("style") or "").lower().split())
    return "hidden" in node.attributes or "display:none" in style or "visibility:hidden" in style


# The fingerprint index in plain Python integers.


def distance(x: int, y: int) -> int:
    return (x ^ y).bit_count()


def permuted(fingerprint: int, order: Sequence[int]) -> int:
    bits = f"{fingerprint:064b}"
    return int("".join(bits[source] for source in order), 2)


def shares_leading(x: int, y: int, leading: int) -> bool:
    return x >> (64 - leading) == y >> (64 - leading) if leading else True


def near(keys: Iterable[int], query: int, leading: int, limit: int, cap: int = 10**9) -> list[tuple[int, int]]:
    """Return (distance, key) of the keys that share the leading bits and are within the limit, nearest first."""
    found = {(distance(key, query), key) for key in keys if shares_leading(key, query, leading)}
    return sorted(pair for pair in found if pair[0] <= limit)[:cap]


def all_pairs(queries: Sequence[int], fingerprints: Iterable[int], k: int) -> set[tuple[int, int]]:
    """Return all pairs (query, fingerprint) within distance k."""
    return {(q, f) for f in fingerprints for q in queries if distance(q, f) <= k}


class NaiveSlice:
    """A slice that stores when each key was last inserted."""

    def __init__(self, leading: int, cap: int = 10**9, ttl: float = 0, epochs: int = 8) -> None:
        self.leading, self.cap = leading, cap
        self.epoch_of: dict[int, int] = {}
        self.ttl, self.epochs, self.epoch = ttl, epochs, 0

    def probe(self, query: int, limit: int) -> list[tuple[int, int]]:
        return near(self.epoch_of, query, self.leading, limit, self.cap)

    def probe_and_insert(self, query: int, limit: int, now: float = 0, asks: bool = False) -> list[tuple[int, int]]:
        if self.ttl:
            self.epoch = max(self.epoch, int(now // (self.ttl / self.epochs)))
            alive = {key: epoch for key, epoch in self.epoch_of.items() if epoch + self.epochs + 1 > self.epoch}
            self.epoch_of = alive
        found = self.probe(query, limit)
        if not asks:
            self.epoch_of[query] = self.epoch
        return found


class NaiveBuckets:
    """A bucket table that stores when each fingerprint was last inserted under each key."""

    def __init__(self, common: int, ttl: float = 0, epochs: int = 8) -> None:
        self.common, self.ttl, self.epochs, self.epoch = common, ttl, epochs, 0
        self.buckets: dict[int, dict[int, int]] = {}
        self.ignored = 0

    def probe_and_insert(self, key: int, fingerprint: int, now: float = 0, asks: bool = False) -> list[int]:
        if self.ttl:
            self.epoch = max(self.epoch, int(now // (self.ttl / self.epochs)))
        bucket = {each: epoch for each, epoch in self.buckets.get(key, {}).items() if self.is_alive(epoch)}
        self.buckets[key] = bucket
        if len(bucket) >= self.common:
            self.ignored += 1
            return []
        found = sorted(bucket.keys() - {fingerprint})
        if not asks:
            bucket[fingerprint] = self.epoch
        return found

    def is_alive(self, epoch: int) -> bool:
        return epoch + self.epochs + 1 > self.epoch


def subset_probability(flips: Sequence[float], subset: Iterable[int]) -> float:
    """Return p(u, S) of Sood 2011, equation 6."""
    chosen = set(subset)
    return prod(p if number in chosen else 1 - p for number, p in enumerate(flips))


def likely_subsets(flips: Sequence[float], most: int) -> list[tuple[float, tuple[int, ...]]]:
    """Return every subset of 1 to `most` bits with its probability, most likely first."""
    subsets = (s for size in range(1, most + 1) for s in combinations(range(len(flips)), size))
    return sorted(((subset_probability(flips, s), s) for s in subsets), key=lambda pair: -pair[0])


Sketch = tuple[int, list[int], list[int]]
"""Exponent of the modulus, MIPs values, sample."""


def packed_sketch(exponent: int, mips: Sequence[int], sample: Sequence[int]) -> list[int]:
    """Return the words of a packed sketch: header, low bytes of the MIPs values, sample."""
    header = exponent + len(mips) * 2**8 + len(sample) * 2**32
    low = bytes(value % 256 for value in mips)
    low += bytes(-len(low) % 8)
    return [header, *struct.unpack(f"<{len(low) // 8}Q", low), *sample]


def compared_with_each(own: Sketch, others: Sequence[Sketch | None]) -> list[list[int]]:
    """Compare one sketch with each of the others.

    Sizes of samples that share nothing are reported as zero, and so are all values of a missing sketch.
    """
    found = []
    for other in others:
        equal, left, right, shared = (0, 0, 0, 0) if other is None else compared(own, other)
        found.append([equal, left, right, shared] if shared else [equal, 0, 0, 0])
    return found


def compared(a: Sketch, b: Sketch) -> tuple[int, int, int, int]:
    """Return the number of equal low bytes, and at the coarser modulus the sizes of both samples and their overlap."""
    equal = sum(left % 256 == right % 256 for left, right in zip(a[1], b[1], strict=True))
    modulus = 2 ** max(a[0], b[0])
    left, right = ({value for value in sketch[2] if value % modulus == 0} for sketch in (a, b))
    return equal, len(left), len(right), len(left & right)


def shared_bands(a: Sequence[int], b: Sequence[int], k: int, s: int) -> list[bool]:
    """Return for each of the first k groups of s values whether their low bytes are all equal."""
    low = [[value % 256 for value in values] for values in (a, b)]
    return [low[0][band * s : band * s + s] == low[1][band * s : band * s + s] for band in range(k)]


def first_equal(values: Sequence[object]) -> list[int]:
    """Return for each value the index of its first occurrence."""
    return [values.index(value) for value in values]


def components(rows: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return the lowest row of each row's component, by copying labels of neighbours until nothing changes."""
    edges = list(edges)
    label = list(range(rows))
    while any(label[a] != label[b] for a, b in edges):
        for a, b in edges:
            label[a] = label[b] = min(label[a], label[b])
    return label


def leaders(
    order: Sequence[int], edges: Iterable[tuple[int, int]], resemblance: Callable[[int, int], float], threshold: float
) -> dict[int, int]:
    """Return the first document of each document's cluster, processing the documents in order."""
    near: dict[int, set[int]] = {row: set() for row in order}
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    leader: dict[int, int] = {}
    for row in order:
        earlier = {leader[neighbour] for neighbour in near[row] if neighbour in leader}
        close = [first for first in earlier if first in near[row] or resemblance(row, first) >= threshold]
        # Choose the leader that the document resembles most, the earliest one on a tie.
        leader[row] = min(close, key=lambda first: (-resemblance(row, first), order.index(first)), default=row)
    return leader


def pairwise(found: Sequence[object], true: Sequence[object]) -> tuple[float, float]:
    """Return precision and recall of the pairs that are in one cluster."""
    pairs = list(combinations(range(len(found)), 2))
    together = [{pair for pair in pairs if labels[pair[0]] == labels[pair[1]]} for labels in (found, true)]
    both = len(together[0] & together[1])
    precision, recall = (both / len(each) if each else 1.0 for each in together)
    return precision, recall


def bcubed(found: Sequence[object], true: Sequence[object]) -> tuple[float, float]:
    """Return B-cubed precision and recall, computed document by document."""
    rows = range(len(found))

    def share(one: Sequence[object], other: Sequence[object], row: int) -> float:
        cluster = [each for each in rows if one[each] == one[row]]
        return sum(other[each] == other[row] for each in cluster) / len(cluster)

    return (
        sum(share(found, true, row) for row in rows) / len(found),
        sum(share(true, found, row) for row in rows) / len(found),
    )


def adjusted_rand(found: Sequence[object], true: Sequence[object]) -> float:
    """Return the adjusted Rand index from the counts of pairs that are together in both, in one, or in neither."""
    kinds = Counter((found[a] == found[b], true[a] == true[b]) for a, b in combinations(range(len(found)), 2))
    both, one, other, none = (kinds[kind] for kind in ((True, True), (True, False), (False, True), (False, False)))
    spread = (both + one) * (one + none) + (both + other) * (other + none)
    return 2 * (both * none - one * other) / spread if spread else 1.0


Shared = dict[tuple[int, int], int]
"""Pairs of rows, the lower one first, with the number of keys that they share."""


def rows_by_key(keys: Sequence[set[int]], kept: Sequence[bool]) -> dict[int, list[int]]:
    """Return the kept rows of each key."""
    found: dict[int, list[int]] = {}
    for row, some in enumerate(keys):
        for key in some if kept[row] else ():
            found.setdefault(key, []).append(row)
    return found


def pairs_sharing(keys: Sequence[set[int]], kept: Sequence[bool], first_new: int, common: int) -> Shared:
    """Count for each pair of kept rows, at least one of them new, the shared keys that have at most `common` rows."""
    by_key = rows_by_key(keys, kept)
    uncommon = [{key for key in some if len(by_key.get(key, ())) <= common} for some in keys]
    pairs = combinations([row for row in range(len(keys)) if kept[row]], 2)
    return {(a, b): len(uncommon[a] & uncommon[b]) for a, b in pairs if b >= first_new and uncommon[a] & uncommon[b]}


def common_keys(keys: Sequence[set[int]], kept: Sequence[bool], common: int) -> tuple[int, int]:
    """Return the number of keys with more than `common` rows, and the number of rows that these keys have in total."""
    sizes = [len(rows) for rows in rows_by_key(keys, kept).values() if len(rows) > common]
    return len(sizes), sum(sizes)


def sample_score(a: Sketch, b: Sketch, least: tuple[float, float], least_sampled: int) -> float | None:
    """Return the largest of resemblance and both containments by sampled shingles, or None if all are too low."""
    _, left, right, shared = compared(a, b)
    resemblance = shared / (left + right - shared)
    containment = max((shared / size for size in (left, right) if size >= least_sampled), default=0.0)
    enough = resemblance >= least[0] or containment >= least[1]
    return max(resemblance, containment) if enough else None


def bag_resemblance(a: Counter[int], b: Counter[int]) -> float:
    """Return the Jaccard coefficient of two bags."""
    return (a & b).total() / (a | b).total()


def near_fingerprints(
    fingerprints: Sequence[int], kept: Sequence[bool], first_new: int, k: int, common: int
) -> dict[tuple[int, int], int]:
    """Return the distances of pairs of kept rows, one of them new, within k bits. Common fingerprints are left out."""
    counts = Counter(each for each, is_kept in zip(fingerprints, kept, strict=True) if is_kept)
    rows = [row for row, each in enumerate(fingerprints) if kept[row] and counts[each] <= common]
    distances = {(a, b): (fingerprints[a] ^ fingerprints[b]).bit_count() for a, b in combinations(rows, 2)}
    return {pair: distance for pair, distance in distances.items() if distance <= k and pair[1] >= first_new}
