"""A web server for the API, which runs until a signal."""

from collections.abc import Callable
from typing import Final

from aiohttp import web

from neardup.messages.pages import MAX_URL
from neardup_services.topic_reader import stop_on_signal

LONGEST_REQUEST_LINE: Final = 12 * MAX_URL + 200
"""Maximum length of the request line in bytes. A character of a URL takes up to four bytes, each written as %XX."""


async def run_api(app: web.Application, host: str, port: int, *, started: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM, then finish open requests. Raises OSError if the address is not available."""
    stop = stop_on_signal()
    runner = web.AppRunner(app, max_line_size=LONGEST_REQUEST_LINE, max_field_size=LONGEST_REQUEST_LINE)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        for address in runner.addresses:
            name = f"[{address[0]}]" if ":" in address[0] else address[0]
            started(f"http://{name}:{address[1]}")
        await stop.wait()
    finally:
        await runner.cleanup()
