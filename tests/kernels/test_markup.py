import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.text.extraction import Limits, read_text
from neardup.types import Page
from tests.support import naive

INLINE = ("b", "i", "span", "em", "a", "code")
BLOCKS = ("div", "section", "ul", "blockquote", "article")
ATTRIBUTES = (
    "", " class=x", ' title="a > b"', " data-x='<p>'", " hidden", ' style="color:red"', ' style="Display : NONE"',
    " id=a/b", ' style="visibility:hidden;"', " checked disabled", ' a="1"b="2"',
)  # fmt: skip
LEAVES = (
    "<br>", "<img src='x>y'>", "<hr/>", "<!-- <p>no</p> -->", "<!---->", "<script>if (a<b) '<p>no</p>'</script>",
    "<style>p > a {}</style>", "<template><p>no</p></template>", "<svg><text>no</text></svg>", "<svg/>",
    "<noscript>no</noscript>", "<textarea>a &lt; <b></textarea>", "<script><!-- <script> </script> no --></script>",
    "<iframe>no</iframe>", "<input value='no'>", "a<wbr>b", "<video>no</video>",
)  # fmt: skip
REFERENCES = (
    "&amp;",
    "&lt;",
    "&eacute;",
    "&notit;",
    "&#65;",
    "&#x1F600;",
    "&#128;",
    "&nGt;",
    "& ",
    "&nosuch;",
    "&#xZ;",
    "&copy",
)

_TEXT = st.one_of(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12).map(html.escape),
                  st.sampled_from(REFERENCES))  # fmt: skip


def _inline(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(
        lambda tag, attribute, content: f"<{tag}{attribute}>{''.join(content)}</{tag}>",
        st.sampled_from(("b", "i", "span", "em", "code", "SPAN")),
        st.sampled_from(ATTRIBUTES),
        st.lists(inner, max_size=3),
    )


def _block(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(
        lambda tag, attribute, content: f"<{tag}{attribute}>{''.join(content)}</{tag}\n>",
        st.sampled_from(("div", "section", "ul", "blockquote", "Article")),
        st.sampled_from(ATTRIBUTES),
        st.lists(inner, max_size=4),
    )


_PHRASE = st.recursive(_TEXT, _inline, max_leaves=6)
_PARAGRAPH = _PHRASE.map(lambda text: f"<p>{text}")
_BODY = st.recursive(st.one_of(_PHRASE, _PARAGRAPH, st.sampled_from(LEAVES)), _block, max_leaves=20)


def visible(page: bytes, *, main: bool = False) -> str:
    return read_text(Page("u", html=page, charset="utf-8"), Limits(), main_content=main).utf8.tobytes().decode()


@given(_BODY)
def test_text_equals_that_of_a_tree(body: str) -> None:
    page = f"<!doctype html><title>A &amp; B</title><body>{body}".encode()
    assert visible(page).split() == naive.visible_text(page).split()


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("a<b", "a"),
        ("1 < 2", "1 < 2"),
        ("a<!--> b", "a b"),
        ("a<!-- never closed", "a"),
        ("<script>never closed", ""),
        ("<p hidden>no<div>yes</div>", "yes"),
        ("<ul><li hidden>no<li>yes</ul>", "yes"),
        ("<div hidden><div>no</div>no</div>yes", "yes"),
        ("<span hidden>no<span>no</span>no</span>yes", "yes"),
        ("<b>W</b>ord", "Word"),
        ("<td>a</td><td>b</td>", "a\nb"),
        ("<a href=x>Home</a><a href=y>About</a>", "Home\nAbout"),
        ("a</>b</ >c<?php ?>d", "abcd"),
        ("<plaintext>a <b> &amp;", "a <b> &amp;"),
        ("<div title='never closed>", ""),
        ("&#0;&#xD800;&#99999999;", "\ufffd\ufffd\ufffd"),
        ("<", "<"),
        ("", ""),
    ],
)
def test_corner(page: str, text: str) -> None:
    assert visible(page.encode()).strip() == text


def test_main_content_excludes_navigation_and_lists_of_links() -> None:
    page = (
        b"<nav>Home News</nav><header>Site</header><div><a href=1>One</a> <a href=2>Two</a></div>"
        b"<p>A paragraph with <a href=3>one link</a> among many words that are none.</p><footer>Imprint</footer>"
    )
    text = "A paragraph with one link among many words that are none."
    assert " ".join(visible(page, main=True).split()) == text
    assert "Home" in visible(page)


def test_main_content_of_a_page_of_links_is_everything() -> None:
    assert visible(b"<a href=1>One</a> <a href=2>Two</a>", main=True).split() == ["One", "Two"]
