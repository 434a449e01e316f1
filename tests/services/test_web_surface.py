"""Tests of the HTTP routes of a worker: none changes anything, and by default only this machine can reach them."""

import json
import subprocess
import sys
from pathlib import Path

import click

from neardup.settings import Settings
from neardup_services.commands.serve import serve

COMPARES = ("POST", "/api/similar")
"""The route for comparisons uses POST, because a page is too long for a URL."""
# It runs in a process of its own, because a process can have only one app, whose metrics are registered once. The
# recluster service has all routes of the others, and more.
ROUTES = """
import json, sys
from pathlib import Path
from neardup.settings import Settings
from neardup_services.worker.faust_app import make_app
app = make_app("recluster", Settings(state=Path(sys.argv[1])))
app.web.init_server()
print(json.dumps([[each.method, each.resource.canonical] for each in app.web.web_app.router.routes()]))
"""


def test_no_route_of_a_worker_changes_anything(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ROUTES, str(tmp_path)]
    output = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    routes = {(method, path) for method, path in json.loads(output)}
    assert {("GET", "/metrics"), ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/api/lookup"), COMPARES} <= routes
    assert {method for method, _ in routes - {COMPARES}} == {"GET", "HEAD"}


def test_both_servers_listen_on_the_loopback_by_default() -> None:
    assert Settings().web_host == "127.0.0.1"
    (host,) = [each for each in serve.params if isinstance(each, click.Option) and each.name == "host"]
    assert host.default == "127.0.0.1"
