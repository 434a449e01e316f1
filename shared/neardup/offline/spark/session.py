"""A Spark session for one offline pass, and the folder where it keeps what it has computed so far.

What a step found is written there as Parquet and read back: it is computed once, a lost executor repeats one step and
not all before it, row numbers stay what they are, and Spark plans the next step from sizes that it knows.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import DataFrame, SparkSession

from neardup.errors import SettingsError

_LEAST_DRIVER_MB: Final = 1024
_DOCUMENTS_A_PARTITION: Final = 50_000
"""With some 75 shingles a document, sorting a partition of postings takes about 100 MB."""


@contextmanager
def spark_session(master: str, scratch: Path, memory_bytes: int) -> Iterator[SparkSession]:
    """A session that is stopped afterwards. Raises SettingsError when Spark cannot start, most often for want of Java.

    What a deployment of Spark sets by itself (memory of executors, keys of an object store) is left as it is. Executors
    run the Python at this one's path.
    """
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.local.dir": str(scratch / "local"),
    }
    if master.startswith("local"):
        # Here the driver does the executors' work.
        settings["spark.driver.memory"] = f"{max(_LEAST_DRIVER_MB, memory_bytes >> 20)}m"
        settings["spark.driver.bindAddress"] = settings["spark.driver.host"] = "127.0.0.1"
    builder = SparkSession.builder.master(master).appName("neardup recluster")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise SettingsError(f"expected a Spark that starts at {master}, with Java 17 or newer, got: {error}") from error
    try:
        # Otherwise it is whatever python3 the executors find first.
        session.sparkContext.pythonExec = sys.executable
        yield session
    finally:
        session.stop()


class Scratch:
    """Steps of one pass, each a folder of Parquet. With more than one machine, all of them must see the directory."""

    def __init__(self, session: SparkSession, directory: Path) -> None:
        self.session = session
        self.written = 0
        """Bytes, by all steps so far."""
        self._directory = directory

    def keep(self, frame: DataFrame, name: str) -> DataFrame:
        """The same rows, computed and written. What had that name before is replaced, and must not be used any more."""
        frame.write.mode("overwrite").parquet(self.path(name).as_uri())
        self.written += sum(part.stat().st_size for part in self.path(name).iterdir())
        return self.session.read.schema(frame.schema).parquet(self.path(name).as_uri())

    def path(self, name: str) -> Path:
        """The folder of a step."""
        return self._directory / name

    def set_partitions(self, documents: int) -> None:
        """How finely the next steps are cut: enough for every core, and so that each part fits in memory."""
        cores = self.session.sparkContext.defaultParallelism
        count = max(2 * cores, documents // _DOCUMENTS_A_PARTITION)
        self.session.conf.set("spark.sql.shuffle.partitions", str(count))
