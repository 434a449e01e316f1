"""The command line: `neardup COMMAND`. Commands are listed here and imported when they are used."""

from typing import Any, Final

import click

import neardup
from neardup.errors import NeardupError
from neardup_services.lazy_group import LazyCommand, LazyGroup


def _command(module: str, name: str, summary: str) -> tuple[str, LazyCommand]:
    return name, LazyCommand(f"neardup_services.commands.{module}", name.replace("-", "_"), summary)


SECTIONS: Final = {
    "Everyday": dict([
        _command("dedup", "dedup", "Find the duplicates among pages in files, without a broker."),
        _command("fingerprint", "fingerprint", "Print the signatures of pages in files."),
        _command("explain", "explain", "Explain why two pages are, or are not, near-duplicates."),
        _command("settings", "settings", "List every setting with its value and meaning."),
        _command("warm_up", "warm-up", "Compile the kernels in advance."),
    ]),
    "Kafka": dict([
        _command("worker", "worker", "Run one worker of a service."),
        _command("topics", "topics", "Create the Kafka topics."),
        _command("produce", "produce", "Send the pages in files to the pages topic."),
        _command("verdicts", "verdicts", "Print the verdicts, one JSON object per line."),
        _command("dead_letters", "dead-letters", "Show records that could not be used, or send them again."),
        _command("forget", "forget", "Forget every page of some URLs."),
        _command("forget", "expire", "Forget every page that arrived before a given time."),
    ]),
    "Offline pass": dict([
        _command("recluster", "recluster", "Cluster all pages, and find verdicts that were wrong."),
        _command("lookup", "lookup", "Show the documents and the clusters of a URL."),
        _command("similar", "similar", "Find the known documents most similar to a page."),
        _command("moved", "moved", "Find the URL where a page was last fetched."),
        _command("changes", "changes", "Show how pages change from one crawl to the next."),
        _command("serve", "serve", "Answer queries about the results over HTTP."),
    ]),
    "Evaluation": dict([
        _command("sample", "sample", "Generate a crawl whose duplicates are known."),
        _command("score", "score", "Measure precision and recall on a generated crawl."),
        _command("evaluate", "evaluate", "Measure precision and recall on labelled pairs."),
        _command("tune", "tune", "Find better settings by cross-validation on labelled pairs."),
        _command("distribution", "distribution", "Show how the fingerprints of pages are distributed."),
        _command("replay", "replay", "Compare past verdicts with those of other settings."),
    ]),
    "Operations": dict([
        _command("status", "status", "Show the state of a deployment or of a state directory."),
        _command("plan", "plan", "Compare the costs of designs of the fingerprint tables."),
        _command("reshard", "reshard", "Change the number of slices or of owners."),
    ]),
}  # fmt: skip
"""The sections of `neardup --help`. A summary is the first sentence of the help of its command."""


class _Group(LazyGroup):
    """A group that reports the errors of this package as one line."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except NeardupError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(neardup.__version__, prog_name="neardup")
def main() -> None:
    """Detect near-duplicate pages for a web crawler.

    A verdict states for each page whether it is new, a copy, a near-duplicate of an earlier page, or contained in one.
    All settings are NEARDUP_* environment variables; `neardup settings` lists them.

    \b
    Example:
      neardup dedup pages.jsonl --out verdicts.jsonl
    """


if __name__ == "__main__":
    main()
