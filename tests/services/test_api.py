"""Tests of queries over HTTP: answers and errors follow the OpenAPI description, and the event loop never blocks."""

import asyncio
import io
import json
import os
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from neardup.errors import OverLimit
from neardup.offline.queries.answers import Lookup, SimilarDocuments
from neardup.offline.queries.changes import ChangeSummary
from neardup.offline.queries.queries import Queries
from neardup.types import Page
from neardup_services.http.api import make_api
from neardup_services.http.openapi import DESCRIPTION, LARGEST_LIMIT
from tests.offline.by_hand import document_of, queries_in, run_pass
from tests.offline.test_index_writer import HOSTILE
from tests.services.schemas import problems
from tests.services.workers import BIN
from tests.support.documents import LONG_URLS, text_of

STORY = text_of(1, 300)
URLS = ["http://a.example/story", "http://b.example/copy", *(url for url in HOSTILE if 0 < len(url) < 8000), *LONG_URLS]


def html(words: list[str]) -> bytes:
    return b"<p>" + " ".join(words).encode()


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a pass over a story under many urls, one of which had another text later, and over a part of the story."""
    directory = tmp_path_factory.mktemp("state")
    pages = [Page(url, html=html(STORY)) for url in URLS]
    pages += [Page(URLS[0], html=html(text_of(2, 300))), Page("http://c.example/part", html=html(STORY[20:90]))]
    run_pass(directory, [document_of(number, page) for number, page in enumerate(pages)])
    return directory


@pytest.fixture(scope="module")
def known(state: Path) -> Queries:
    return queries_in(state)


async def ask(app: web.Application, method: str, path: str, **more: Any) -> tuple[int, Any]:
    """Return status and body after a check of both against the description."""
    async with TestClient(TestServer(app)) as client, client.request(method, path, **more) as answer:
        body = json.loads(await answer.read())
        assert answer.headers["Content-Type"] == "application/json"
        route = DESCRIPTION["paths"].get(path.partition("?")[0], {}).get(method.lower())
        if route is not None:
            schema = route["responses"][str(answer.status)]["content"]["application/json"]["schema"]
            assert problems(body, schema, DESCRIPTION) == []
        return answer.status, body


# Answers


async def test_a_url_is_looked_up(known: Queries) -> None:
    status, body = await ask(make_api(known), "GET", f"/lookup?url={quote('http://b.example/copy')}")
    assert status == 200
    assert body["documents"][0]["cluster"] == "0:0"
    assert {each["url"] for each in body["clusters"][0]["urls"]} == set(URLS)
    assert [each["url"] for each in body["contains"]] == ["http://c.example/part"]


async def test_a_limit_is_applied(known: Queries) -> None:
    _, body = await ask(make_api(known), "GET", f"/lookup?url={quote(URLS[1])}&limit=2")
    assert len(body["clusters"][0]["urls"]) == 2
    assert body["clusters"][0]["size"] == len(URLS)


@pytest.mark.parametrize("url", [url for url in URLS if len(url) < 2000], ids=lambda url: ascii(url)[:30])
async def test_a_hostile_url_is_looked_up_like_any_other(known: Queries, url: str) -> None:
    for path in ("/lookup", "/moved", "/changes"):
        status, body = await ask(make_api(known), "GET", f"{path}?url={quote(url, safe='')}")
        assert (status, body["url"]) == (200, url)


@pytest.mark.parametrize("kind", ["text/html", "text/html; charset=utf-8", "application/xhtml+xml"])
async def test_a_page_is_compared_with_the_documents(known: Queries, kind: str) -> None:
    status, body = await ask(make_api(known), "POST", "/similar", data=html(STORY), headers={"Content-Type": kind})
    assert status == 200
    assert [each["relation"] for each in body["documents"]] == ["identical", "contains"]


@pytest.mark.parametrize(("kind", "relation"), [("text/html", "same-text"), ("text/plain", "same-shingles")])
async def test_markup_in_plain_text_is_not_parsed(known: Queries, kind: str, relation: str) -> None:
    given = {"data": " ".join(["<b>", *STORY]).encode(), "headers": {"Content-Type": kind}}
    _, body = await ask(make_api(known), "POST", "/similar?limit=1", **given)
    assert [each["relation"] for each in body["documents"]] == [relation]


async def test_a_page_that_cannot_be_compared_has_a_reason(known: Queries) -> None:
    status, body = await ask(make_api(known), "POST", "/similar", data=b"", headers={"Content-Type": "text/html"})
    assert (status, body) == (200, {"skipped": "empty", "documents": []})


async def test_a_page_that_moved_is_found(known: Queries) -> None:
    status, body = await ask(make_api(known), "GET", f"/moved?url={quote(URLS[1])}")
    assert (status, body["moved"], body["found"]["relation"]) == (200, True, "identical")


async def test_a_page_without_copies_is_null(known: Queries) -> None:
    _, body = await ask(make_api(known), "GET", f"/moved?url={quote('http://c.example/part')}")
    assert (body["moved"], body["found"]) == (False, None)


async def test_changes_of_a_url_and_of_all(known: Queries) -> None:
    _, body = await ask(make_api(known), "GET", f"/changes?url={quote(URLS[0])}")
    assert [each["change"] for each in body["versions"]] == [None, "changed"]
    _, body = await ask(make_api(known), "GET", "/changes")
    assert (body["urls"], body["by_change"]["changed"]) == (1, 1)


# Errors


@pytest.mark.parametrize("path", ["/lookup", "/moved", "/changes"])
async def test_an_unknown_url_is_not_found(known: Queries, path: str) -> None:
    status, body = await ask(make_api(known), "GET", f"{path}?url=http://nowhere.example/%FF%00")
    assert (status, body) == (404, {"error": "no document has this URL: expected a URL exactly as it was crawled"})


@pytest.mark.parametrize(
    "path",
    [
        "/lookup", "/lookup?url=", "/moved", "/changes?url=", "/lookup?url=a&limit=0", "/lookup?url=a&limit=-1",
        "/lookup?url=a&limit=many", f"/lookup?url=a&limit={LARGEST_LIMIT + 1}", "/lookup?url=a&limit=%D9%A3",
        f"/lookup?url=a&limit={'9' * 5000}",
    ],
)  # fmt: skip
async def test_an_invalid_request_is_a_clear_error(known: Queries, path: str) -> None:
    status, body = await ask(make_api(known), "GET", path)
    assert status == 400
    assert "expected" in body["error"]


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "application/pdf", "nonsense"])
async def test_a_body_of_another_type_is_refused(known: Queries, kind: str) -> None:
    status, body = await ask(make_api(known), "POST", "/similar", data=b"a=b", headers={"Content-Type": kind})
    assert status == 400
    assert "text/html" in body["error"]


@pytest.mark.parametrize("mounted", [False, True])
async def test_a_body_over_the_limit_is_refused_and_one_at_the_limit_is_not(known: Queries, mounted: bool) -> None:
    """The limit does not depend on the limit of the application into which this one is mounted."""
    for size, expected in ((3_000_000, 200), (3_000_001, 413)):
        app: web.Application = make_api(known, most_body_bytes=3_000_000)
        if mounted:
            app, inner = web.Application(client_max_size=100), app
            app.add_subapp("/api", inner)
        given = {"data": io.BytesIO(b"x" * size), "headers": {"Content-Type": "text/plain"}}
        status, _ = await ask(app, "POST", "/api/similar" if mounted else "/similar", **given)
        assert status == expected


async def test_a_page_over_the_limits_is_refused() -> None:
    class Strict(Queries):
        def __init__(self) -> None:
            pass

        def similar(self, page: Page, limit: int = 1) -> SimilarDocuments:
            raise OverLimit("expected at most 10 tokens, the page has more")

    given = {"data": html(STORY), "headers": {"Content-Type": "text/html"}}
    assert await ask(make_api(Strict()), "POST", "/similar", **given) == (
        413,
        {"error": "expected at most 10 tokens, the page has more"},
    )


@pytest.mark.parametrize("path", ["/lookup?url=a", "/moved?url=a", "/changes", "/changes?url=a", "/similar"])
async def test_before_the_first_pass_the_service_is_not_available(tmp_path: Path, path: str) -> None:
    app = make_api(queries_in(tmp_path))
    post = path == "/similar"
    given = {"data": html(STORY), "headers": {"Content-Type": "text/html"}} if post else {}
    status, body = await ask(app, "POST" if post else "GET", path, **given)
    assert status == 503
    assert "run `neardup recluster`" in body["error"]


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/", 404), ("GET", "/similar", 405), ("PUT", "/lookup", 405)]
)
async def test_an_unknown_route_is_an_error_in_json(known: Queries, method: str, path: str, status: int) -> None:
    got, body = await ask(make_api(known), method, path)
    assert (got, list(body)) == (status, ["error"])


async def test_an_unexpected_error_reveals_no_internals(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Queries):
        def __init__(self) -> None:
            pass

        def lookup(self, url: str, limit: int = 1) -> Lookup | None:
            raise RuntimeError("a secret")

    async with TestClient(TestServer(make_api(Broken()))) as client, client.get("/lookup?url=a") as answer:
        assert answer.status == 500
        assert "secret" not in await answer.text()
    assert "a secret" in caplog.text


# The description


async def test_the_description_is_served_and_names_every_route(known: Queries) -> None:
    app = make_api(known)
    status, body = await ask(app, "GET", "/openapi.json")
    assert (status, body["openapi"]) == (200, "3.1.0")
    routes = {(str(route.resource.canonical), route.method.lower()) for route in app.router.routes() if route.resource}
    assert routes == {(path, method) for path, methods in body["paths"].items() for method in methods}


def test_every_schema_of_the_description_is_used_and_every_reference_is_valid() -> None:
    written = json.dumps(DESCRIPTION)
    for name in DESCRIPTION["components"]["schemas"]:
        assert f'"#/components/schemas/{name}"' in written
    for part in written.split('"#/components/schemas/')[1:]:
        assert part.partition('"')[0] in DESCRIPTION["components"]["schemas"]


def test_no_route_changes_anything() -> None:
    methods = {method for path in DESCRIPTION["paths"].values() for method in path}
    assert methods == {"get", "post"}
    assert [path for path, each in DESCRIPTION["paths"].items() if "post" in each] == ["/similar"]


# Running


class Slow(Queries):
    """Queries whose slow calls end only after a fast one was answered, so they must run in parallel."""

    def __init__(self) -> None:
        self._answered = threading.Event()

    def lookup(self, url: str, limit: int = 1) -> Lookup | None:
        if url == "slow":
            assert self._answered.wait(10)
        else:
            self._answered.set()
        return None

    def changes(self) -> ChangeSummary:
        assert self._answered.wait(10)
        return ChangeSummary(0, 0, {}, [], [])


@pytest.mark.parametrize(("path", "times", "expected"), [("/lookup?url=slow", 1, 404), ("/changes", 50, 200)])
async def test_slow_queries_do_not_block_others(path: str, times: int, expected: int) -> None:
    async with TestClient(TestServer(make_api(Slow()))) as client:

        async def status(path: str) -> int:
            async with client.get(path) as answer:
                return answer.status

        waiting = [asyncio.create_task(status(path)) for _ in range(times)]
        await asyncio.sleep(0.1)
        assert await status("/lookup?url=fast") == 404
        assert set(await asyncio.gather(*waiting)) == {expected}


@pytest.fixture
def serving(state: Path, tmp_path: Path) -> Iterator[tuple["subprocess.Popen[str]", str, Path]]:
    """Run `neardup serve` on a state directory without results."""
    process = subprocess.Popen(
        [str(BIN / "neardup"), "serve", "--state", str(tmp_path), "--port", "0"], text=True, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    yield process, process.stdout.readline().removeprefix("listening on ").strip(), tmp_path
    process.kill()
    process.wait()
    process.stdout.close()


def get(address: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_a_new_pass_and_ends_cleanly(
    serving: tuple["subprocess.Popen[str]", str, Path], state: Path, ending: signal.Signals
) -> None:
    process, address, directory = serving
    assert address.startswith("http://127.0.0.1:")
    question = f"{address}/lookup?url={quote(LONG_URLS[1], safe='')}"
    assert get(question)[0] == 503
    (directory / "clusters").mkdir()
    (directory / "clusters" / "index.sqlite.new").write_bytes((state / "clusters" / "index.sqlite").read_bytes())
    (directory / "clusters" / "index.sqlite.new").rename(directory / "clusters" / "index.sqlite")
    status, body = get(question)
    assert (status, body["url"]) == (200, LONG_URLS[1])
    os.kill(process.pid, ending)
    assert process.wait(30) == 0


def test_a_port_that_is_taken_is_a_clear_error(serving: tuple["subprocess.Popen[str]", str, Path]) -> None:
    _, address, directory = serving
    command = [str(BIN / "neardup"), "serve", "--state", str(directory), "--port", address.rpartition(":")[2]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "cannot listen" in done.stderr
