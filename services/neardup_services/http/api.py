"""The HTTP API for queries about the results of the offline pass. The routes are described in `openapi`.

The application runs alone (`neardup serve`) or is mounted in another one. It returns JSON and changes nothing. Every
query runs in a thread, so that it does not block the event loop. Errors are {"error": text}, with status 4xx for errors
of the client and 5xx for errors of the server.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import orjson
from aiohttp import web

from neardup.errors import OverLimit, StateError
from neardup.messages.pages import MAX_URL
from neardup.offline.queries.queries import MOST_SIMILAR, MOST_URLS, Queries
from neardup.types import Page
from neardup_services.http.openapi import DESCRIPTION, LARGEST_LIMIT

MOST_BODY_BYTES: Final = 8 * 2**20

_HTML: Final = ("text/html", "application/xhtml+xml")
_PLAIN: Final = "text/plain"
_log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_api(queries: Queries, *, most_body_bytes: int = MOST_BODY_BYTES) -> web.Application:
    """Return the application. It never writes, and uses a new index from the next request on."""
    routes = _Routes(queries, most_body_bytes)
    app = web.Application(middlewares=[_errors_as_json])
    app.router.add_get("/lookup", routes.lookup, allow_head=False)
    app.router.add_post("/similar", routes.similar)
    app.router.add_get("/moved", routes.moved, allow_head=False)
    app.router.add_get("/changes", routes.changes, allow_head=False)
    app.router.add_get("/openapi.json", routes.openapi, allow_head=False)
    return app


class _Routes:
    def __init__(self, queries: Queries, most_body_bytes: int) -> None:
        self._queries = queries
        self._most_body_bytes = most_body_bytes
        # A summary may take long. Only one runs at a time, so that the threads stay free for other queries.
        self._summing_up = asyncio.Lock()

    async def lookup(self, request: web.Request) -> web.Response:
        limit = _limit(request, MOST_URLS)
        return _found(await asyncio.to_thread(self._queries.lookup, _url(request), limit))

    async def similar(self, request: web.Request) -> web.Response:
        limit = _limit(request, MOST_SIMILAR)
        page = await self._page(request)
        return _json(await asyncio.to_thread(self._queries.similar, page, limit))

    async def moved(self, request: web.Request) -> web.Response:
        return _found(await asyncio.to_thread(self._queries.moved, _url(request)))

    async def changes(self, request: web.Request) -> web.Response:
        if "url" in request.query:
            return _found(await asyncio.to_thread(self._queries.history, _url(request)))
        async with self._summing_up:
            return _json(await asyncio.to_thread(self._queries.changes))

    async def openapi(self, request: web.Request) -> web.Response:
        return _json(DESCRIPTION)

    async def _page(self, request: web.Request) -> Page:
        if request.content_type not in (*_HTML, _PLAIN):
            raise _wrong(f"Content-Type: expected text/html or text/plain, got {request.content_type}")
        # request.read() would apply the limit of the application that this one may be mounted in.
        body = bytearray()
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > self._most_body_bytes:
                raise web.HTTPRequestEntityTooLarge(
                    self._most_body_bytes, len(body), text=f"body: expected at most {self._most_body_bytes} bytes"
                )
        plain = _PLAIN if request.content_type == _PLAIN else None
        return Page("", html=bytes(body), charset=request.charset, content_type=plain)


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return _error(error.status, error.text or error.reason, dict(error.headers))
    except OverLimit as error:
        return _error(413, str(error))
    except StateError as error:
        return _error(503, str(error))
    except Exception:
        _log.exception("a query failed: %s", request.path)
        return _error(500, "the query failed; the log of the server has the cause")


def _url(request: web.Request) -> str:
    url = request.query.get("url", "")
    if not url:
        raise _wrong("url: expected a value in the query, got none")
    if len(url) > MAX_URL:
        raise _wrong(f"url: expected at most {MAX_URL} characters, got {len(url)}")
    return url


def _limit(request: web.Request, default: int) -> int:
    given = request.query.get("limit", str(default))
    if not (given.isascii() and given.isdigit() and len(given) < 10 and 1 <= int(given) <= LARGEST_LIMIT):
        raise _wrong(f"limit: expected a whole number from 1 to {LARGEST_LIMIT}, got {given[:20]!r}")
    return int(given)


def _wrong(text: str) -> web.HTTPBadRequest:
    return web.HTTPBadRequest(text=text)


def _found(answer: object) -> web.Response:
    return (
        _error(404, "no document has this URL: expected a URL exactly as it was crawled")
        if answer is None
        else _json(answer)
    )


def _error(status: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    kept = {name: value for name, value in (headers or {}).items() if name == "Allow"}
    return _json({"error": text}, status, kept)


def _json(body: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        body=orjson.dumps(body),
        status=status,
        content_type="application/json",
        # URLs are foreign data, which a browser must not interpret as HTML.
        headers={"X-Content-Type-Options": "nosniff", **(headers or {})},
    )
