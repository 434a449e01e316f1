"""The recluster service's app, for `faust -A neardup_services.apps.recluster worker`."""

from neardup.settings import Settings
from neardup_services.worker.faust_app import make_app

app = make_app("recluster", Settings.load())
