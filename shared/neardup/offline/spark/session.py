"""A Spark session for one offline pass, and the directory of its intermediate frames.

The frame of a step is written as Parquet and read back. It is therefore computed only once, a lost executor repeats one
step instead of all, row numbers stay fixed, and Spark plans the next step with known sizes.
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
"""Documents per partition. With about 75 shingles per document, sorting a partition of postings takes about 100 MB."""


@contextmanager
def spark_session(master: str, scratch: Path, memory_bytes: int) -> Iterator[SparkSession]:
    """Start a session and stop it afterwards.

    Settings of a Spark deployment (memory of executors, credentials of an object store) are not changed. Executors run
    the Python interpreter at the path of this one. Raises SettingsError when Spark cannot start, usually because Java
    is missing.
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
        # The driver also does the work of executors.
        settings["spark.driver.memory"] = f"{max(_LEAST_DRIVER_MB, memory_bytes >> 20)}m"
        settings["spark.driver.bindAddress"] = settings["spark.driver.host"] = "127.0.0.1"
    builder = SparkSession.builder.master(master).appName("neardup recluster")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise SettingsError(
            f"expected Spark to start at {master}, got: {error}; install Java 17 or newer and check the address"
        ) from error
    try:
        # Otherwise executors run the first python3 on their path.
        session.sparkContext.pythonExec = sys.executable
        yield session
    finally:
        session.stop()


class Scratch:
    """Frames of one pass, each a directory of Parquet files. All machines must reach the directory."""

    def __init__(self, session: SparkSession, directory: Path) -> None:
        self.session = session
        self.written = 0
        """Bytes written so far."""
        self._directory = directory

    def keep(self, frame: DataFrame, name: str) -> DataFrame:
        """Write a frame and read it back. A frame with the same name is replaced and must no longer be used."""
        frame.write.mode("overwrite").parquet(self.path(name).as_uri())
        self.written += sum(part.stat().st_size for part in self.path(name).iterdir())
        return self.session.read.schema(frame.schema).parquet(self.path(name).as_uri())

    def path(self, name: str) -> Path:
        """Return the directory of a frame."""
        return self._directory / name

    def set_partitions(self, documents: int) -> None:
        """Set the number of partitions of the next steps, so that all cores are used and partitions fit in memory."""
        cores = self.session.sparkContext.defaultParallelism
        count = max(2 * cores, documents // _DOCUMENTS_A_PARTITION)
        self.session.conf.set("spark.sql.shuffle.partitions", str(count))
