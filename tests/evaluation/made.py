"""Labelled pairs generated for tests."""

import json
import random
from pathlib import Path
from typing import Any

WORDS = [f"w{number}" for number in range(3000)]


def text(seed: int, length: int = 200) -> list[str]:
    return random.Random(seed).choices(WORDS, k=length)


def edited(words: list[str], seed: int, changes: int) -> list[str]:
    """Replace single words: each change affects up to three of the 3-shingles."""
    changed = list(words)
    rng = random.Random(seed)
    for place in rng.sample(range(len(words)), changes):
        changed[place] = rng.choice(WORDS)
    return changed


def lines(near: int = 12, other: int = 12, changes: int = 2, first: int = 0) -> list[dict[str, Any]]:
    """Return near-duplicates with a few changed words, followed by pairs of unrelated texts."""
    found: list[dict[str, Any]] = []
    for number in range(first, first + near):
        words = text(number)
        found.append({"label": 1, "a": " ".join(words), "b": " ".join(edited(words, number, changes))})
    for number in range(first, first + other):
        found.append({"label": 0, "a": " ".join(text(1000 + number)), "b": " ".join(text(2000 + number))})
    return found


def write(path: Path, pairs: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    return path
