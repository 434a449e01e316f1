from collections.abc import Iterator
from pathlib import Path

import pytest

from neardup.settings import Settings
from tests.services.workers import Deployment


@pytest.fixture
def deployment(kafka_settings: Settings, tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(kafka_settings, tmp_path)
    yield made
    for worker in made.workers:
        if worker.process.poll() is None:
            worker.process.kill()
        worker.process.wait()
