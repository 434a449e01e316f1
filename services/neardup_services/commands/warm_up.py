"""`neardup warm-up`: compiles the kernels before they are needed."""

import time

import click
from rich.console import Console

from neardup.kernels import cache
from neardup.settings import Settings


@click.command("warm-up")
def warm_up() -> None:
    """Compile the kernels in advance.

    Compiles all kernels that the services and `neardup dedup` call, and stores them in the cache: in NUMBA_CACHE_DIR if
    it is set, else in the user's cache directory. This takes about a minute, once per machine and release; later runs
    return at once. Workers also compile missing kernels when they start; the Docker image contains compiled kernels.

    \b
    Example:
      neardup warm-up
    """
    from neardup_services.worker.warm_up import compile_kernels  # imports every service

    console = Console(stderr=True)
    started = time.perf_counter()
    try:
        with console.status("compiling kernels") as status:
            count = compile_kernels(Settings.load(), lambda step: status.update(f"compiling kernels: {step}"))
    except OSError as error:
        raise click.ClickException(f"{error.filename}: cannot write the cache of compiled kernels: {error}") from error
    if count is None:
        click.echo(f"already compiled: {cache.folder()}")
    else:
        click.echo(f"compiled {count} functions in {time.perf_counter() - started:.0f} s: {cache.folder()}")
