"""Templates of hosts: everything on a page except the article, with slots for the varying parts.

Navigation, header and footer belong to the host. Advertisements, hit counter, date and session id are the *dressing*,
which changes with every fetch. Rendering is a function of article, template and dressing, so a page can be rendered
again instead of being stored.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np

from neardup.sample.article import Article, write
from neardup.sample.vocabulary import PARAGRAPH, Vocabulary

_SLOT: Final = "\x01"
"""Delimiter around the name of a slot while a template is built."""

_TITLE_WORDS: Final = 7
_AD_WORDS: Final = 7
_ADS_IN_POOL: Final = 40
_WORDS_PER_AD: Final = 200
"""Words of the article per advertisement, so that advertisements remain a small part of a short page."""
_MOST_ADS: Final = 3

_PARAGRAPHS: Final = ("<p>", '<p class="text">', '\n    <p style="margin:0 0 1em">', "<P>\n")
MARKUPS: Final = len(_PARAGRAPHS)


@dataclass(frozen=True, slots=True)
class Dressing:
    """The parts of a page that change between fetches while the article stays the same."""

    ads: tuple[int, ...]
    counter: int
    date: str
    session: str
    markup: int = 0
    note: str = ""
    """The requested URL, on error pages."""


@dataclass(frozen=True, slots=True)
class Template:
    """Fixed pieces, the slot after each piece but the last, and the pool of advertisements."""

    pieces: tuple[str, ...]
    slots: tuple[str, ...]
    ads: tuple[str, ...]

    def render(self, article: Article, dressing: Dressing) -> str:
        """Return the page."""
        opening = _PARAGRAPHS[dressing.markup]
        paragraphs = article.text.rstrip(PARAGRAPH).replace(PARAGRAPH, f"</p>\n{opening}")
        filled = {
            "title": article.part(0, _TITLE_WORDS).text.replace(PARAGRAPH, " ").strip(),
            "session": dressing.session,
            "date": dressing.date,
            "article": f"{opening}{paragraphs}</p>",
            "ads": "".join(self.ads[ad] for ad in dressing.ads),
            "counter": str(dressing.counter),
            "note": escape(dressing.note),
        }
        parts: list[str] = []
        for piece, slot in zip(self.pieces, self.slots, strict=False):
            parts += (piece, filled[slot])
        return "".join(parts) + self.pieces[-1]


def ads_beside(article: Article) -> int:
    """Return the number of advertisements on a page with this article."""
    return min(_MOST_ADS, len(article) // _WORDS_PER_AD)


def make_template(
    vocabulary: Vocabulary, rng: np.random.Generator, *, charset: str, words: int, markup_bytes: int, sessions: bool
) -> Template:
    """Generate a template with about `words` words of boilerplate and `markup_bytes` of markup, style and script."""
    draw = random.Random(int(rng.integers(2**32)))  # noqa: S311
    phrase = _phrase_maker(vocabulary, rng)
    session = f"?sid={_SLOT}session{_SLOT}" if sessions else ""
    sections = max(4, words // 8)
    links = [f'<li><a href="/{draw.randrange(10**4)}/{session}">{phrase(2)}</a></li>' for _ in range(sections)]
    aside = "".join(f"<p>{phrase(8)}</p>" for _ in range((words - 2 * sections) // 16))
    style, script = _style(draw, markup_bytes // 2), _script(draw, markup_bytes // 3)
    wrap = "".join(f'<div class="{_name(draw)}" id="{_name(draw)}">' for _ in range(draw.randint(2, 8)))
    html = (
        f'<!DOCTYPE html>\n<html lang="{vocabulary.language.code}"><head><meta charset="{charset}">'
        f"<title>{_SLOT}title{_SLOT}</title>\n<style>{style}</style>\n<script>{script}</script></head>\n<body>"
        f"<header><h2>{phrase(3)}</h2></header>\n<nav><ul>{''.join(links)}</ul></nav>\n{wrap}"
        f"<article><h1>{_SLOT}title{_SLOT}</h1>\n{_SLOT}article{_SLOT}\n</article>{'</div>' * wrap.count('<div')}\n"
        f"<aside>{_SLOT}ads{_SLOT}{aside}</aside>\n<footer><time>{_SLOT}date{_SLOT}</time> "
        f"<span>{phrase(2)} {_SLOT}counter{_SLOT}</span> <p>&copy; {phrase(5)}</p></footer></body></html>\n"
    )
    return _cut(html, _ads(phrase, draw))


def make_bare_template(vocabulary: Vocabulary, rng: np.random.Generator, *, charset: str) -> Template:
    """Generate the minimal template of print views and error pages."""
    heading = _phrase_maker(vocabulary, rng)(2)
    html = (
        f'<!DOCTYPE html>\n<html><head><meta charset="{charset}"><title>{heading}</title></head><body>'
        f"<header>{heading} {_SLOT}note{_SLOT}</header>\n<main>{_SLOT}article{_SLOT}</main></body></html>\n"
    )
    return _cut(html, ())


def _cut(html: str, ads: tuple[str, ...]) -> Template:
    cut = html.split(_SLOT)
    return Template(tuple(cut[0::2]), tuple(cut[1::2]), ads)


def _phrase_maker(vocabulary: Vocabulary, rng: np.random.Generator) -> Callable[[int], str]:
    """Return a function that generates a given number of words."""
    return lambda count: write(vocabulary, rng, count).text.replace(PARAGRAPH, "").strip()


def _ads(phrase: Callable[[int], str], draw: random.Random) -> tuple[str, ...]:
    return tuple(
        f'<div class="ad"><a href="https://ads.example/{draw.randrange(10**6)}">'
        f'<img src="/ad/{draw.randrange(10**6)}.gif" alt=""></a> {phrase(_AD_WORDS)}</div>\n'
        for _ in range(_ADS_IN_POOL)
    )


def _name(draw: random.Random) -> str:
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(3, 9)))


def _style(draw: random.Random, size: int) -> str:
    return _repeated(
        lambda: f".{_name(draw)} .{_name(draw)}{{margin:{draw.randrange(40)}px;color:#{draw.randrange(16**6):06x}}}\n",
        size,
    )


def _script(draw: random.Random, size: int) -> str:
    return _repeated(
        lambda: f"var {_name(draw)}=document.getElementById('{_name(draw)}'),{_name(draw)}={draw.randrange(10**6)};\n",
        size,
    )


def _repeated(make_line: Callable[[], str], size: int) -> str:
    """Concatenate generated lines until they have at least `size` characters."""
    lines: list[str] = []
    length = 0
    while length < size:
        lines.append(make_line())
        length += len(lines[-1])
    return "".join(lines)
