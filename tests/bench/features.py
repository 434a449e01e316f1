"""Benchmark from pages to signatures on one core. Each peer does the same work in the same run.

    html_vs_parser       html → all signatures, against selectolax (lexbor), which builds its tree, removes script and
                         style elements, and returns the text
    text_vs_rensa        text → simhash and MIPs vector, against text → words → shingles → rensa.RMinHash, 128
    text_vs_datasketch   the same work against datasketch.MinHash, 128

The text consists of the canonical tokens of each page, joined by blanks. A peer gets the same tokens by splitting the
text, and every peer builds the same 3-word shingles. The programs take turns, and the best run of each counts.
"""

import gzip
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time

import numpy as np
from datasketch import MinHash
from rensa import RMinHash
from selectolax.lexbor import LexborHTMLParser

from neardup.kernels.signatures.shingling import ngrams
from neardup.signatures.features import FeatureChoices, features_of
from neardup.signatures.fingerprint import fingerprint_of
from neardup.signatures.signature import Signatures
from neardup.signatures.sketch import mips_of
from neardup.text.tokens import tokens_of, tokens_of_text
from neardup.types import Page
from tests.bench.result import Result

REAL_PAGES = Path(__file__).parents[3] / "shared" / "data" / "pages-real.jsonl.gz"
M = 128
W = 3


def run(*, full: bool) -> list[Result]:
    """Run the benchmark. `full` uses all pages and more rounds."""
    pages, about = _pages(None if full else 150)
    rounds = 9 if full else 5
    signatures = Signatures()
    ours, parser = _best([lambda: _sign(signatures, pages), lambda: _parse(pages)], rounds)
    texts = _texts(signatures, pages)
    peer_texts = texts[: len(texts) if full else 60]
    share = sum(map(len, peer_texts)) / sum(map(len, texts))
    works = [lambda: _sketch(texts), lambda: _rensa(texts), lambda: _datasketch(peer_texts)]
    text, rensa, datasketch = _best(works, rounds)
    size = sum(len(page.html or b"") for page in pages)
    words = sum(text.count(" ") + 1 for text in texts)
    return [
        Result("html_vs_parser", parser / ours, "ratio", f"selectolax, {about}", goal=0.75),
        Result("text_vs_rensa", rensa / text, "ratio", f"rensa RMinHash {M}, {about}", goal=4),
        Result("text_vs_datasketch", datasketch / share / text, "ratio", f"MinHash {M}, {about}", goal=50),
        Result("html_pages_per_s", round(len(pages) / ours), "pages/s", f"{size / len(pages) / 1000:.0f} KB per page"),
        Result("html_mb_per_s", round(size / ours / 1e6), "MB/s", "one core"),
        Result("text_words_per_s", round(words / text), "words/s", "one core"),
    ]


def _best(works: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    # CPU time, not wall time, so that other programs on the machine have no influence.
    best = [float("inf")] * len(works)
    for work in works:
        work()
    for _ in range(rounds):
        for i, work in enumerate(works):
            start = process_time()
            work()
            best[i] = min(best[i], process_time() - start)
    return best


def _sign(signatures: Signatures, pages: list[Page]) -> None:
    for page in pages:
        signatures.of(page)


def _parse(pages: list[Page]) -> None:
    for page in pages:
        tree = LexborHTMLParser(page.html or b"")
        tree.strip_tags(["script", "style"])
        if tree.root is not None:
            tree.root.text()


def _sketch(texts: list[str]) -> None:
    choices = FeatureChoices()
    for text in texts:
        tokens = tokens_of(np.frombuffer(text.encode(), dtype=np.uint8))
        fingerprint_of(features_of(tokens, choices))
        mips_of(ngrams(tokens.hashes, W), M)  # with repeats, like the input of the peers: the minima are the same


def _shingled(text: str) -> list[str]:
    words = text.split(" ")
    return [" ".join(words[i : i + W]) for i in range(len(words) - W + 1)]


def _rensa(texts: list[str]) -> None:
    for text in texts:
        sketch = RMinHash(num_perm=M, seed=1)
        sketch.update(_shingled(text))
        sketch.digest()


def _datasketch(texts: list[str]) -> None:
    for text in texts:
        MinHash(num_perm=M).update_batch([shingle.encode() for shingle in _shingled(text)])


def _texts(signatures: Signatures, pages: list[Page]) -> list[str]:
    # A peer would split n-grams of characters differently, so use only pages with spaces.
    texts = [" ".join(signatures.text_and_tokens(page)[1].words()) for page in pages]
    return [text for text in texts if text and tokens_of_text(text).words() == text.split()]


def _pages(most: int | None) -> tuple[list[Page], str]:
    if REAL_PAGES.exists():
        with gzip.open(REAL_PAGES, "rt") as lines:
            pages = [Page(page["url"], html=page["html"].encode()) for page in map(json.loads, lines)]
        return pages[:most], f"{len(pages[:most])} real pages"
    return [_made_page(seed) for seed in range(most or 300)], f"{most or 300} generated pages"


def _made_page(seed: int) -> Page:
    """Return a page with about as much markup, script and text as a real page."""
    random_ = random.Random(seed)
    words = ["".join(random_.choices("etaoinshrdlu", k=random_.randint(2, 10))) for _ in range(3000)]
    parts = [
        f"<!doctype html><html><head><title>{words[0]}</title><script>{'var a = {};' * 8000}</script></head><body>"
    ]
    for i in range(400):
        text = " ".join(random_.choices(words, k=random_.randint(2, 12)))
        parts.append(
            f'<div class="c{i} item" data-id="{seed}-{i}"><a href="/{seed}/{i}?x=1&amp;y=2">{text}</a></div>\n'
        )
    return Page(f"http://made/{seed}", html="".join(parts).encode())
