"""The shard's app, for `faust -A neardup_services.apps.shard worker`."""

from neardup.settings import Settings
from neardup_services.worker.faust_app import make_app

app = make_app("shard", Settings.load())
