"""Removes the containers and networks of a label when its standard input is closed.

    python tests/support/container_remover.py LABEL

Every ContainerCluster starts one. The pipe closes when the test process ends, even by SIGKILL, so no container outlives
the tests.
"""

import sys

from testcontainers.core.docker_client import DockerClient

LABEL = "neardup.tests.cluster"
ENGINE_SECONDS = 60
"""Maximum time in seconds to wait for a response of the engine. A pull reports its progress more often."""


def main() -> None:
    sys.stdin.read()
    engine = DockerClient(timeout=ENGINE_SECONDS).client
    chosen = {"label": f"{LABEL}={sys.argv[1]}"}
    for container in engine.containers.list(all=True, filters=chosen):
        container.remove(force=True, v=True)
    for network in engine.networks.list(filters=chosen):
        network.remove()


if __name__ == "__main__":
    main()
