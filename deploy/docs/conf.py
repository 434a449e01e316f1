"""Sphinx configuration of the documentation site (`make docs`).

The pages are plain Markdown, which also reads well without the site: the navigation is defined here instead of in the
pages, Mermaid diagrams are drawn as SVG when the site is built, and links to files outside of the documentation become
paths. The build fails on any warning, and if a page would load something from another host.
"""

import base64
import re
from pathlib import Path
from typing import Any, Final

import mermaidx
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

FOLDER: Final = Path(__file__).resolve().parent
ROOT: Final = FOLDER.parents[1]

NAVIGATION: Final = {
    "Use": ["getting-started", "verdicts", "library", "offline", "cli", "glossary"],
    "Trust": ["evaluation", "reliability", "benchmarks"],
    "Operate": [
        "operations/runbook",
        "operations/deployment",
        "operations/resharding",
        "operations/recall",
        "operations/upgrading",
        "operations/broker-rights",
        "reference/settings",
        "reference/metrics",
    ],
    "Understand": [
        "architecture/overview",
        "architecture/protocol",
        "architecture/index",
        "architecture/offline",
        "architecture/code-map",
        "architecture/*",
    ],
    "Decisions": ["architecture/decisions/*"],
}
"""Every page under its heading in the sidebar; a pattern adds the pages that are not listed before it."""

project = "neardup"
author = "the neardup authors"
version = re.findall(r'__version__ = "(.+)"', (ROOT / "shared" / "neardup" / "__init__.py").read_text())[0]
extensions = ["myst_parser"]
root_doc = "index"
highlight_language = "text"
smartquotes = False  # the names of options begin with two dashes
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
# Examples are often shortened by three dots, which the grammar of JSON does not have.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"neardup {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}

_LINK: Final = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)#:\s]+)(#[^)\s]*)?\)")
_LOADED: Final = re.compile(
    r"""<(?:script|link|img|iframe|source|object|embed)\b[^>]*\b(?:src|href|data|srcset)=["'](?:https?:)?//[^>]*>"""
    r"|@import\s[^;]*//[^;]*|url\(\s*['\"]?(?:https?:)?//[^)]*\)"
)


class Mermaid(SphinxDirective):  # type: ignore[misc]
    """A Mermaid diagram, drawn as SVG. An error in the diagram fails the build."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the diagram as an image inside the page, with its source as the text for screen readers."""
        source = "\n".join(self.content)
        try:
            svg = mermaidx.render(source, config={"fontFamily": "Arial, Helvetica, sans-serif"}).svg()
        except Exception as error:
            # Mermaid has no class of errors of its own. Sphinx adds the page and the line.
            raise self.error(f"expected a Mermaid diagram, got: {error}") from error
        image = nodes.image(alt=source, classes=["mermaid"])
        image["uri"] = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
        return [nodes.container("", image, classes=["diagram"])]


def read_source(app: Sphinx, page: str, source: list[str]) -> None:
    """Prepare a page: append the navigation to the first one, and print links that leave the folder as paths."""
    here = (FOLDER / page).parent

    def local(link: re.Match[str]) -> str:
        target = (here / link["target"]).resolve()
        if target.is_relative_to(FOLDER):
            return link[0]
        path = target.relative_to(ROOT).as_posix()
        return link["text"] if path in link["text"] else f"{link['text']} (`{path}`)"

    source[0] = _LINK.sub(local, source[0])
    if page == root_doc:
        for heading, pages in NAVIGATION.items():
            options = f":caption: {heading}\n:hidden:\n:titlesonly:\n:glob:"
            source[0] += "\n```{toctree}\n" + options + "\n\n" + "\n".join(pages) + "\n```\n"


def check_hosts(app: Sphinx, error: Exception | None) -> None:
    """Fail the build if a page or a style sheet loads something from another host."""
    if error is not None or app.builder.format != "html":
        return
    found = [
        f"{path.relative_to(app.outdir)}: {match[0][:120]}"
        for path in sorted(Path(app.outdir).rglob("*"))
        if path.suffix in (".html", ".css")
        for match in _LOADED.finditer(path.read_text())
    ]
    for each in found:
        logging.getLogger(__name__).error("expected a site that needs no other host, found in %s", each)
        app.statuscode = 1


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and the checks. Called by Sphinx."""
    app.add_directive("mermaid", Mermaid)
    app.connect("source-read", read_source)
    app.connect("build-finished", check_hosts)
    return {"parallel_read_safe": True}
