"""`neardup dedup`: finds the duplicates among pages in files, without a broker."""

import asyncio
import hashlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click
import orjson
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from neardup.embedded.embedded import Embedded
from neardup.embedded.state_lock import StateLock
from neardup.embedded.summary import Tally
from neardup.errors import InputError
from neardup.inputs import Item, Source, open_input
from neardup.inputs.folder import DEFAULT_PREFIX, FolderSource
from neardup.inputs.opening import STANDARD_INPUT
from neardup.messages import dead_letters
from neardup.runtime.process_tuning import tune_process
from neardup.settings import Settings
from neardup_services.commands._shared import preset_option
from neardup_services.commands.output_files import STANDARD_OUTPUT, Existing, OutputFile, OutputFiles

CHUNK: Final = 256
"""Number of items that are read at once."""
FOLDERS: Final = "folders"
"""Directory in the state directory for the records of processed files, one per folder."""
EXIT_REJECTED: Final = 3
EXIT_INTERRUPTED: Final = 130


@click.command()
@click.argument("inputs", nargs=-1, required=True)
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    help="Directory for the state. Without it, nothing is kept between runs.",
)
@click.option(
    "--out", default="-", show_default=True, help="File for the verdicts, as JSON lines. - is standard output."
)
@click.option("--dead-letters", "letters", help="File for items that could not be used, as JSON lines.")
@click.option("--append", is_flag=True, help="Append to output files that another run wrote.")
@click.option("--overwrite", is_flag=True, help="Replace output files that another run wrote.")
@click.option("--url-prefix", default=DEFAULT_PREFIX, show_default=True, help="Prefix of the urls of pages in folders.")
@preset_option
@click.option("--again", is_flag=True, help="Process all inputs, including those that an earlier run has processed.")
@click.option(
    "--save-seconds", default=60.0, show_default=True, help="Maximum time between saves of the state, in seconds."
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")
def dedup(
    inputs: tuple[str, ...],
    state: Path | None,
    out: str,
    letters: str | None,
    append: bool,
    overwrite: bool,
    url_prefix: str,
    preset: str,
    again: bool,
    save_seconds: float,
    as_json: bool,
) -> None:
    """Find the duplicates among pages in files, without a broker.

    INPUTS are JSON lines, msgpack, WARC, Parquet, folders of HTML, or - for standard input. Verdicts go to --out as
    they are reached; a later line for the same document replaces an earlier one. With --state the next run compares
    its pages with those of all earlier runs, and an interrupted run resumes and completes its output files. Any other
    output file must be new or empty, unless --append or --overwrite is given.

    Exit code 0: every item was processed; 3: some items could not be used; 130: interrupted, the state is saved.

    \b
    Example:
      neardup dedup pages.jsonl --state state --out verdicts.jsonl
    """
    tune_process()
    settings = replace(Settings.load(preset=preset), verdict_format="json")
    if append and overwrite:
        raise click.UsageError("expected --append or --overwrite, got both")
    existing = Existing.APPEND if append else Existing.OVERWRITE if overwrite else Existing.REFUSE
    sources = [open_input(name, url_prefix=url_prefix) for name in dict.fromkeys(inputs)]
    for name in (out, letters):
        if name is not None and name != STANDARD_OUTPUT and str(Path(name).resolve()) in map(_key, sources):
            raise InputError(f"{name}: expected an output file, got one of the inputs")
    with ExitStack() as stack:
        directory = state or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        # Before the record of output files is read: a run that is ending would still change it.
        lock = stack.enter_context(StateLock(directory))
        try:
            outputs = stack.enter_context(OutputFiles(directory, existing))
            verdicts = outputs.open(out)
            rejects = outputs.open(letters) if letters else None
        except OSError as error:
            raise click.ClickException(f"{error.filename}: cannot write: {error.strerror}") from error
        for path in outputs.abandoned:
            click.echo(f"the interrupted run wrote to {path}; its remaining verdicts go to {out}", err=True)
        progress = stack.enter_context(_progress())
        run = DedupRun(
            sources,
            directory,
            settings,
            outputs,
            verdicts,
            rejects,
            progress,
            lock=lock,
            save_seconds=save_seconds,
            again=again,
        )
        interrupted = asyncio.run(run.run())
    summary = run.tally.summary()
    seconds = time.monotonic() - run.started
    if as_json:
        click.echo(json.dumps(summary.as_dict() | {"seconds": round(seconds, 3)}), err=out == "-")
    else:
        click.echo("\n".join(summary.lines()), err=out == "-")
        click.echo(f"{seconds:.1f} s, {summary.pages / max(seconds, 1e-9):,.0f} pages/s", err=out == "-")
    if interrupted:
        click.echo(
            "interrupted" + (f"; run the command again to resume, the state is in {state}" if state else ""), err=True
        )
        sys.exit(EXIT_INTERRUPTED)
    if summary.rejected:
        sys.exit(EXIT_REJECTED)


class DedupRun:
    """A run of `neardup dedup` over its sources."""

    def __init__(
        self,
        sources: list[Source],
        state: Path,
        settings: Settings,
        outputs: OutputFiles,
        verdicts: OutputFile,
        rejects: OutputFile | None,
        progress: Progress,
        *,
        lock: StateLock,
        save_seconds: float,
        again: bool,
    ) -> None:
        self.started = time.monotonic()
        self.tally = Tally(0)
        self._sources = {_key(source): source for source in sources}
        self._items: dict[str, Iterator[Item]] = {}
        self._folders: dict[str, FolderSource] = {}
        self._state = state
        self._outputs = outputs
        self._verdicts = verdicts
        self._rejects = rejects
        self._progress = progress
        self._save_seconds = save_seconds
        self._again = again
        self._stop = asyncio.Event()
        self._saved = self.started
        self._task = TaskID(0)
        self._taken: dict[str, int] = {}
        """Number of the last item taken from each source."""
        self._stream = Embedded(state, settings, on_verdict=self._told, on_dead_letter=self._rejected, lock=lock)

    async def run(self) -> bool:
        """Process all sources; return whether a signal interrupted the run."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop.set)
        async with self._stream:
            self.tally = Tally(self._stream.page_count)
            unfinished = self._unfinished()
            await self._resume(unfinished)
            self._outputs.start()
            sizes = [source.bytes_total for source in self._sources.values()]
            total = None if None in sizes else sum(size or 0 for size in sizes)
            self._task = self._progress.add_task("pages", total=total, pages=0, rate="")
            # Some stages may have saved these pages already, so they come first and in the same order. A save before
            # the last of them would lose the record of the others.
            for key, last in unfinished.items():
                if not await self._read(key, last):
                    return True
            if unfinished:
                await self._save()
            for key in self._sources:
                if not await self._read(key):
                    break
            await self._before_save()
            # The next run reads new content from standard input, so its position is kept only for a crash.
            await self._stream.finish({key: number for key, number in self._taken.items() if key != STANDARD_INPUT})
            self._outputs.note(complete=not self._stop.is_set())
        return self._stop.is_set()

    def _unfinished(self) -> dict[str, int]:
        """Return the sources of a save that was interrupted, in the order of processing, each with its last item."""
        before = self._stream.progress
        notes = before.notes or {}
        found = {key: last for key, last in (before.saving or {}).items() if notes.get(key, -1) < last}
        missing = [key for key in found if key not in self._sources]
        if missing:
            raise InputError(
                f"the last run was interrupted while it saved: expected {', '.join(missing)} among the inputs, got "
                "other inputs; add them to make sure that no page is lost"
            )
        return found

    async def _resume(self, unfinished: Mapping[str, int]) -> None:
        """Set up the items of all sources, after those that earlier runs have processed."""
        self._taken = dict(self._stream.progress.notes or {})
        if self._again and not unfinished and self._taken.keys() & self._sources.keys():
            self._taken = {key: number for key, number in self._taken.items() if key not in self._sources}
            # A save that is cut off later must be compared with this and not with the progress of earlier runs.
            await self._stream.save(self._taken)
        for key, source in self._sources.items():
            last = self._taken.get(key, -1)
            if isinstance(source, FolderSource) and source.is_folder:
                name = hashlib.blake2b(os.fsencode(key), digest_size=16).hexdigest()
                source.resume(self._state / FOLDERS / name, last + 1, unfinished.get(key, last) - last)
                self._folders[key] = source
            self._items[key] = source.items(after=last)

    async def _read(self, key: str, last: int | None = None) -> bool:
        """Process the items of a source, up to the number `last` if it is given. Return False when interrupted."""
        source = self._sources[key]
        items = self._items[key] if last is None else _up_to(self._items[key], last)
        while not self._stop.is_set():
            chunk = await asyncio.to_thread(lambda: list(islice(items, CHUNK)))
            if not chunk:
                return True
            await self._take(source, chunk)
            self._show()
            if last is None and time.monotonic() - self._saved > self._save_seconds:
                await self._save()
        return False

    async def _take(self, source: Source, chunk: list[Item]) -> None:
        pages = []
        for item in chunk:
            if item.page is None:
                self._reject({"source": item.source, "number": item.number, "reason": item.rejected})
            else:
                pages.append(item.page)
                self.tally.add_page(item.page.url, len(item.page.content))
        if pages:
            await self._stream.feed(pages)
        # The order of the keys is that of processing.
        self._taken.pop(_key(source), None)
        self._taken[_key(source)] = chunk[-1].number

    async def _save(self) -> None:
        await self._before_save()
        await self._stream.save(self._taken)
        self._saved = time.monotonic()

    async def _before_save(self) -> None:
        """Write every verdict and every record of a processed file that a save covers to disk before it."""
        await self._stream.drain()
        self._outputs.note()
        for key, folder in self._folders.items():
            await asyncio.to_thread(folder.save, self._taken.get(key, -1) + 1)

    def _told(self, value: bytes) -> None:
        self._verdicts.write(value)
        self.tally.add_verdict(orjson.loads(value))

    def _rejected(self, value: bytes) -> None:
        letter = dead_letters.decode(value)
        self._reject(
            {"document": f"{letter.partition}:{letter.offset}", "reason": letter.reason, "detail": letter.detail}
        )

    def _reject(self, fields: dict[str, Any]) -> None:
        self.tally.rejected += 1
        if self._rejects is not None:
            # A file name may contain bytes that are not UTF-8.
            self._rejects.write(json.dumps(fields, ensure_ascii=False).encode(errors="backslashreplace"))

    def _show(self) -> None:
        seconds = time.monotonic() - self.started
        pages = self._stream.page_count - self._stream.progress.pages
        read = sum(source.bytes_read for source in self._sources.values())
        self._progress.update(self._task, completed=read, pages=pages, rate=f"{pages / seconds:,.0f}/s")


def _key(source: Source) -> str:
    """Return the name of a source in the state: its absolute path, however the command line spells it."""
    return source.name if source.name == STANDARD_INPUT else str(Path(source.name).resolve())


def _up_to(items: Iterator[Item], last: int) -> Iterator[Item]:
    for item in items:
        yield item
        if item.number >= last:
            return


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.fields[pages]:,} pages"),
        BarColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    )
