import base64
import json

import pytest

from neardup.deployment.topics import topic_specs
from neardup.log import Output
from neardup.log.kafka import KafkaLog
from neardup.messages.topics import Topics
from tests.services.workers import Deployment

pytestmark = [pytest.mark.kafka, pytest.mark.real_broker]

LETTERS = ("--topic", "pages")


async def test_a_dead_letter_is_shown_and_sent_again(deployment: Deployment) -> None:
    settings = deployment.settings
    topics = Topics.under(settings.prefix)
    async with KafkaLog(settings) as log:
        await log.create_topics(topic_specs(settings))
        worker = deployment.start("neardup", "worker", "featurizer")
        worker.await_ready()
        await log.send([Output(topics.pages, 0, b"\x1b[31mkey", b'{"url": 7}')])
    seen = deployment.neardup("dead-letters", "show", *LETTERS)
    for _ in range(20):
        if seen.stdout:
            break
        seen = deployment.neardup("dead-letters", "show", *LETTERS)
    assert seen.returncode == 0, seen
    assert f"{topics.pages}-0 at 0: invalid-page: " in seen.stdout
    assert "\x1b" not in seen.stdout

    [line] = deployment.neardup("dead-letters", "show", "--json").stdout.splitlines()
    letter = json.loads(line)
    assert base64.b64decode(letter["value"]) == b'{"url": 7}'
    assert base64.b64decode(letter["key"]) == b"\x1b[31mkey"
    assert (letter["stage"], letter["reason"]) == ("featurizer", "invalid-page")

    assert deployment.neardup("dead-letters", "replay", "--reason", "corrupt").stdout == "no dead letters match\n"
    assert (
        deployment.neardup("dead-letters", "replay", "--dry-run").stdout == f"{topics.pages}: 1 would be sent again\n"
    )
    assert deployment.neardup("dead-letters", "replay").stdout == f"{topics.pages}: 1 sent again\n"
    for _ in range(20):
        summary = deployment.neardup("dead-letters", "show", "--summary").stdout
        if "2 dead letters" in summary:
            break
    assert summary == "featurizer: invalid-page: 2\n2 dead letters\n"
