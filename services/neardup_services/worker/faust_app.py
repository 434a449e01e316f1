"""The Faust application of a worker: one factory for all services.

Faust provides life cycle, signals, web server and supervision. Its consumer is not used, because it acknowledges
messages whose agent raised, and has a small fraction of the throughput of the runner. The boot strategy therefore
omits the consumer, and the application hosts a Runner.
"""

import asyncio
import logging
from typing import Any, ClassVar, Final

import faust
from faust.app.base import BootStrategy
from faust.sensors.prometheus import setup_prometheus_sensors
from faust.web import Request, Response, View
from mode import Service

from neardup.deployment.deployment import make_runner
from neardup.errors import LogError
from neardup.log import Log
from neardup.log.kafka import KafkaLog
from neardup.offline.passes.recluster import RESULTS
from neardup.offline.queries.queries import Queries
from neardup.runtime.runner import Runner
from neardup.runtime.stage import using_state
from neardup.settings import Settings
from neardup_services.http.api import make_api
from neardup_services.worker.logs import logging_config
from neardup_services.worker.recluster_passes import Passes
from neardup_services.worker.warm_up import ensure_loaded

# Not the name of this module, under which Faust logs (see `logs`).
logger = logging.getLogger(__package__)

RECLUSTER: Final = "recluster"


class RunnerBoot(BootStrategy):
    """A boot strategy without the Kafka clients of Faust."""

    enable_kafka = False
    enable_kafka_consumer = False
    enable_kafka_producer = False


class RunnerApp(faust.App):
    """A Faust application that starts without Kafka."""

    BootStrategy = RunnerBoot

    async def on_first_start(self) -> None:
        with using_state(self.conf.datadir.parent):
            # Faust creates its data directory, but not the parent.
            self.conf.datadir.parent.mkdir(parents=True, exist_ok=True)
            await super().on_first_start()


class RunnerService(Service):
    """A service that hosts a runner. A stop waits until the runner has saved its state; a failure stops the worker."""

    service: ClassVar[str]
    settings: ClassVar[Settings]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.runner: Runner | None = None
        self._ended = asyncio.Event()
        self._ended.set()
        self._preparing: asyncio.Task[None] | None = None

    @Service.task
    async def _run(self) -> None:
        log = KafkaLog(self.settings)
        self._ended.clear()
        try:
            self._preparing = asyncio.create_task(self._prepare(log))
            await asyncio.wait([self._preparing])
            if self._preparing.cancelled():
                return
            self._preparing.result()
            self.runner = make_runner(self.service, self.settings, log)
            self.before_run(log)
            if self.should_stop:
                return
            await self.runner.run()
        except asyncio.CancelledError as error:
            if self.should_stop:
                raise
            # Faust takes a cancelled task for a finished one: the process would stay alive and do nothing.
            raise LogError("a call of the Kafka client was cancelled") from error
        finally:
            try:
                await self.ending()
                await log.stop()
            finally:
                self._ended.set()

    async def _prepare(self, log: Log) -> None:
        await ensure_loaded(self.settings, logger.info)
        await log.start()

    def before_run(self, log: Log) -> None:
        """Prepare the service. Called before the runner starts to read from `log`."""

    async def ending(self) -> None:
        """Finish with the log, which is about to disconnect."""

    async def on_stop(self) -> None:
        if self._preparing is not None:
            self._preparing.cancel()
        if self.runner is not None:
            self.runner.stop()
        await self._ended.wait()


class ReclusterService(RunnerService):
    """The service that also runs offline passes, on the worker with the first partition of the documents."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.passes: Passes | None = None

    def before_run(self, log: Log) -> None:
        self.passes = Passes(self.settings, log.send)

    async def offline_pass(self) -> None:
        """Run an offline pass if this worker has the first partition."""
        if self.passes and self.runner and any(each.partition == 0 for each in self.runner.assignment):
            await self.passes.run()

    async def ending(self) -> None:
        if self.passes is not None:
            await self.passes.stop()

    async def on_stop(self) -> None:
        # At the same time: each of them may wait for `stop_seconds`.
        await asyncio.gather(self.ending(), super().on_stop())


def _hosting(name: str, settings: Settings) -> type[RunnerService]:
    class Hosted(ReclusterService if name == RECLUSTER else RunnerService):  # type: ignore[misc]
        pass

    Hosted.service = name
    Hosted.settings = settings
    return Hosted


def make_app(name: str, settings: Settings) -> faust.App:
    """Return the application of a service. It serves /metrics, /healthz and /readyz, and /api for recluster."""
    app = RunnerApp(
        f"{settings.prefix}-{name}",
        broker=f"kafka://{settings.broker.replace(',', ';kafka://')}",
        datadir=settings.state / "faust",
        autodiscover=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_tables_enabled=False,
        web_bind=settings.web_host,
        web_port=settings.web_port,
        logging_config=logging_config(settings),
        worker_redirect_stdouts=False,
    )
    # Faust creates the instance from the class and binds it to the application, so that a crash stops the worker.
    app.service(_hosting(name, settings))
    setup_prometheus_sensors(app, pattern="/metrics", name_prefix="faust")

    if name == RECLUSTER:
        api = make_api(Queries.of(settings.state / RESULTS, settings), most_body_bytes=settings.page_bytes)
        app.web.web_app.add_subapp("/api", api)  # type: ignore[attr-defined]

        @app.timer(settings.recluster_seconds)  # type: ignore[untyped-decorator]
        async def recluster() -> None:
            service = _service(app)
            assert isinstance(service, ReclusterService)
            await service.offline_pass()

    @app.page("/healthz")
    async def healthz(view: View, request: Request) -> Response:
        """Report that the process and its event loop run."""
        return view.json({"status": "alive"})

    @app.page("/readyz")
    async def readyz(view: View, request: Request) -> Response:
        """Report whether the worker has its partitions and makes progress."""
        service = _service(app)
        runner = service.runner if service else None
        reason = runner.not_ready() if runner else "loading kernels or connecting to the broker"
        partitions = [str(partition) for partition in runner.assignment] if runner else []
        body = {"ready": reason is None, "reason": reason, "partitions": partitions}
        return view.json(body, status=200 if reason is None else 503)

    return app


def _service(app: faust.App) -> RunnerService | None:
    return next((each for each in app._extra_service_instances or () if isinstance(each, RunnerService)), None)
