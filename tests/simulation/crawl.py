"""Generated pages of the simulation, determined by the seed."""

import random
from collections.abc import Iterator, Sequence

from neardup.messages.pages import write_page
from neardup.types import Page

_WORDS = [
    a + b for a in ("ka", "lo", "mi", "ru", "ta", "ve") for b in ("dor", "lin", "mas", "nor", "pet", "sun", "vik")
]


def crawl_of(draw: random.Random) -> Iterator[bytes]:
    """Generate short pages, most of them related to an earlier one. Some are skipped, and some values are not pages."""
    texts: list[list[str]] = []
    for number in range(draw.randint(10, 45)):
        url = f"http://{draw.randrange(4)}.example/{number if draw.random() < 0.8 else 0}"
        if draw.random() < 0.03:
            yield b'{"url": 7}'
            continue
        if draw.random() < 0.04:
            yield write_page(Page(url, text="too short"))
            continue
        words = draw.choices(_WORDS, k=draw.randint(30, 70))
        if texts and draw.random() < 0.75:
            words = _changed(draw, draw.choice(texts))
        texts.append(words)
        yield write_page(Page(url, html=(draw.choice(["<p>", "<div>", "<p>"]) + " ".join(words)).encode()))


def _changed(draw: random.Random, words: Sequence[str]) -> list[str]:
    """Return the words unchanged, with a few replaced, shortened, or in another order."""
    changed = list(words)
    what = draw.random()
    if what < 0.3:
        return changed
    if what < 0.75:
        for _ in range(draw.choice([1, 1, 2, 3, 6])):
            changed[draw.randrange(len(changed))] = draw.choice(_WORDS)
        return changed
    if what < 0.9:
        start = draw.randrange(len(changed) // 3 + 1)
        return changed[start : start + max(20, len(changed) * 2 // 3)]
    draw.shuffle(changed)
    return changed
