"""What a worker serves: nothing that changes anything, and only to this machine unless told otherwise."""

from pathlib import Path

import click
import pytest

from neardup.deployment import SERVICES
from neardup.settings import Settings
from neardup_services.app import make_app
from neardup_services.commands.serve import serve

COMPARES = ("POST", "/api/similar")
"""Takes a page to compare, as a page is too long for an address."""


@pytest.mark.parametrize("name", SERVICES)
def test_no_route_of_a_worker_changes_anything(name: str, tmp_path: Path) -> None:
    app = make_app(name, Settings(state=tmp_path))
    app.web.init_server()
    router = app.web.web_app.router  # type: ignore[attr-defined]
    routes = {(each.method, each.resource.canonical) for each in router.routes() if each.resource}
    assert {("GET", "/metrics"), ("GET", "/healthz"), ("GET", "/readyz")} <= routes
    assert (COMPARES in routes) == (name == "recluster")
    assert {method for method, _ in routes - {COMPARES}} <= {"GET", "HEAD"}


def test_both_servers_listen_on_the_loopback_unless_told_otherwise() -> None:
    assert Settings().web_host == "127.0.0.1"
    (host,) = [each for each in serve.params if isinstance(each, click.Option) and each.name == "host"]
    assert host.default == "127.0.0.1"
