"""The aggregator's app, for `faust -A neardup_services.apps.aggregator worker`."""

from neardup.settings import Settings
from neardup_services.worker.faust_app import make_app

app = make_app("aggregator", Settings.load())
