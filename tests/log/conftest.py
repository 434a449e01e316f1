from collections.abc import Iterator

import pytest

from tests.log.guarded import Guarded, guarded_broker


@pytest.fixture(scope="package")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded_broker(tmp_path_factory.mktemp("guarded")) as broker:
        yield broker
