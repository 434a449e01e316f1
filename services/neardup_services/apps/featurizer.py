"""The featurizer's app, for `faust -A neardup_services.apps.featurizer worker`."""

from neardup.settings import Settings
from neardup_services.worker.faust_app import make_app

app = make_app("featurizer", Settings.load())
