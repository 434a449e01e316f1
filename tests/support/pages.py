"""Pages made by the tests: golden pages and mutations of them."""

import random
from collections.abc import Iterator

from neardup.types import Page

GOLDEN: dict[str, Page] = {
    "english": Page(
        "http://golden/english",
        html=b"<!doctype html><title>Rivers &amp; lakes</title><nav><a href=/>Home</a><a href=/map>Map</a></nav>"
        b"<p>The river rises in the hills to the north of the old town, and from there it runs for <b>ninety</b>"
        b" miles to the sea."
        b"<script>var hidden = 'words';</script><p>In dry summers it is little more than a brook; after the thaw it"
        b" floods the meadows, and nobody who knows it would build there.<p hidden>secret"
        b"<div>Last seen in March.</div>",
    ),
    "latin1": Page(
        "http://golden/latin1",
        html="<meta charset=iso-8859-1><h1>Größe und Gewicht</h1><p>Für die Straße gilt: Äpfel, Öl und Übung sind"
        " nicht dasselbe wie Brot, Käse und Fleiß, auch wenn mancher es glaubt.</p>".encode("cp1252"),
    ),
    "japanese": Page(
        "http://golden/japanese",
        html="<title>川</title><p>この川は町の北の丘に源を発し、そこから海まで九十マイル流れる。ﾊﾝｶｸ文字も同じ。".encode(
            "shift_jis"
        ),
        content_type="text/html; charset=Shift_JIS",
    ),
    "thai": Page("http://golden/thai", text="แม่น้ำสายนี้เริ่มต้นจากเนินเขาทางเหนือของเมืองเก่า และไหลลงสู่ทะเล"),
    "greek": Page(
        "http://golden/greek", text="Ο ΠΟΤΑΜΌΣ πηγάζει από τους λόφους βόρεια της παλιάς πόλης και χύνεται στη θάλασσα"
    ),
    "short": Page("http://golden/short", html=b"<p>Not much here"),
    "empty": Page("http://golden/empty", html=b""),
}

_NASTY = (
    b"<", b">", b"</", b"<!--", b"-->", b"<![CDATA[", b"<script>", b"</script>", b"<style>", b"<template>",
    b"<p hidden>", b"&", b"&#", b"&#x", b"&amp", b"&NotEqualTilde;", b'"', b"'", b"=", b"\0", b"\xff\xfe",
    b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"<plaintext>", b"<svg", b"/>", b"<meta charset=utf-7>",
    b"<meta charset=utf-16>", b"\xcc\x81" * 40, "ﷺ".encode() * 20, b"<a " + b"x" * 5000 + b">",
    b'<a title="' + b"y" * 9000, b"<div>" * 3000, b"</div>" * 3000, b"<b><i>" * 500, b"<table><tr><td>" * 300,
    b"<!doctype", b"<?xml encoding='x'",
)  # fmt: skip
_CHARSETS = (
    None,
    "utf-8",
    "utf-16",
    "shift_jis",
    "gb18030",
    "euc-kr",
    "iso-2022-jp",
    "nonsense",
    "",
    "cp1252\0",
    "big5",
)
_TYPES = (
    None,
    "text/html",
    "text/html; charset=koi8-r",
    "text/plain",
    "image/png",
    "application/xhtml+xml",
    ";;",
    "x" * 99,
)


def mutated(seed: int, count: int) -> Iterator[Page]:
    """Generate golden pages with damaged bytes, tags, encodings and nesting."""
    random_ = random.Random(seed)
    sources = [page.content for page in GOLDEN.values()]
    for number in range(count):
        data = bytearray(random_.choice(sources))
        for _ in range(random_.randint(1, 8)):
            place = random_.randint(0, len(data))
            what = random_.random()
            if what < 0.5:
                data[place:place] = random_.choice(_NASTY)
            elif what < 0.65:
                data[place : place + random_.randint(1, 30)] = b""
            elif what < 0.8:
                data[place:place] = random_.randbytes(random_.randint(1, 12))
            elif what < 0.9:
                data[place:place] = random_.choice(sources)
            elif data:
                data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
        yield Page(
            f"http://mutated/{number}",
            html=bytes(data),
            charset=random_.choice(_CHARSETS),
            content_type=random_.choice(_TYPES),
        )
