"""Records that no client of this project sends: noise, partly valid messages, expensive pages."""

import json
import random
from collections.abc import Iterator
from typing import Any

import msgpack
import numpy as np

from tests.messages.test_readers import GOOD
from tests.support.messages import decode, encode


def hostile_records(draw: random.Random, count: int, good: list[bytes]) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Generate keys and values. `good` are values that the topic carries, for damaged copies."""
    makers = [_noise, _damaged, _half_right, _other_version, _hostile_page, _nothing, _huge_array, _deep, _swelling]
    for _ in range(count):
        key = draw.choice([None, b"", draw.randbytes(9), b"http://a.example/", "\x1b[31m\u0000".encode()])
        yield key, draw.choice(makers)(draw, good)


def _noise(draw: random.Random, good: list[bytes]) -> bytes:
    return draw.choice([b"", b"{", b"nd", b"nd\x01\x00", b"<"]) + draw.randbytes(draw.randrange(200))


def _damaged(draw: random.Random, good: list[bytes]) -> bytes:
    """Return a valid value with some bytes changed, or truncated."""
    value = bytearray(draw.choice(good))
    for _ in range(draw.randint(1, 4)):
        value[draw.randrange(len(value))] = draw.randrange(256)
    return bytes(value[: draw.randint(1, len(value))] if draw.random() < 0.3 else value)


def _half_right(draw: random.Random, good: list[bytes]) -> bytes:
    """Return a message with a valid checksum and an invalid value in one of its fields."""
    kind = draw.choice(sorted(GOOD))
    body = decode(GOOD[kind], kind)
    body[draw.choice(sorted(body))] = draw.choice(
        [None, -1, 2**63, "x" * 1000, [], {}, b"\xff", [[[]]], np.zeros(3), np.full((2, 3), -5), float("nan")]
    )
    return encode(kind, body)


def _other_version(draw: random.Random, good: list[bytes]) -> bytes:
    value = bytearray(draw.choice([each for each in GOOD.values() if each is not None]))
    value[2] = draw.randrange(2, 256)
    return bytes(value)


def _hostile_page(draw: random.Random, good: list[bytes]) -> bytes:
    pages: list[Any] = [
        {"url": "javascript:alert(1)", "html": "<p>x"},
        {"url": "http://a.example/\x00\x1b[2J", "html": "<p>" + "word " * 50},
        {"url": "http://" + "a" * 20_000, "html": "<p>x"},
        {"url": "http://a.example/", "html": "<div>" * 30_000},
        {"url": "http://a.example/", "html": "<a " * 20_000},
        {"url": "http://a.example/", "html": "&#x" * 20_000},
        {"url": "http://a.example/", "text": "\ud7ff\u202e\u0000" * 5_000},
        {"url": "http://a.example/", "html": "a" * 200_000, "charset": "no-such-charset"},
        {"url": "http://a.example/", "html": "<p>x", "fetched_at": {"$gt": ""}},
        {"url": ["http://a.example/"], "html": 7},
        ["url", "html"],
        "http://a.example/",
        7,
    ]
    page = draw.choice(pages)
    if draw.random() < 0.3:
        return bytes(msgpack.packb(page))
    if draw.random() < 0.2:
        return b'{"url": "http://a.example/1", "url": "http://a.example/2", "html": "<p>twice", "html": 1}'
    return json.dumps(page).encode()


def _nothing(draw: random.Random, good: list[bytes]) -> bytes | None:
    return draw.choice([None, b""])


def _huge_array(draw: random.Random, good: list[bytes]) -> bytes:
    """Return a message that announces far more data than it contains."""
    payload: bytes = msgpack.packb(["probes", 1, {"keys": msgpack.ExtType(1, b"\x03\x01\x00\x00\xff\xff\xff\xff")}])
    return draw.choice([b"nd\x01\x00" + draw.randbytes(4) + payload, b"\xdf\xff\xff\xff\xff" + draw.randbytes(20)])


SWOLLEN: list[Any] = [[[]] * 10] * 16 + [[[]] * 300_000, [[[]] * 1000] * 300]


def _swelling(draw: random.Random, good: list[bytes]) -> bytes:
    """Return a message with a valid checksum and millions of tiny items, each of which would become a Python object."""
    kind = draw.choice(sorted(GOOD))
    body = decode(GOOD[kind], kind)
    return encode(kind, body | {draw.choice(sorted(body)): draw.choice(SWOLLEN)})


def _deep(draw: random.Random, good: list[bytes]) -> bytes:
    return draw.choice([b"\x91" * 50_000 + b"\xc0", b"[" * 50_000, b'{"a":' * 20_000, b"\x81\xa1a" * 20_000])
