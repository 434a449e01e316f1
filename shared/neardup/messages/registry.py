"""The kinds of messages that the inbox and the probes topic carry.

To add a kind, declare its `Format` in a module of its own and list it here.
"""

from typing import Final

from neardup.messages.answers import ANSWERS, Answers
from neardup.messages.formats import MessageRegistry
from neardup.messages.orders import ORDERS, Expire, Forget
from neardup.messages.probes import PROBES, Probes
from neardup.messages.questions import EVIDENCE, QUESTIONS, EvidenceBatch, Questions
from neardup.messages.registrations import REGISTRATIONS, SKIPPED, Registrations, SkippedPages
from neardup.messages.seeds import RETIRED, SEED_ENTRIES, SEED_KEYS, SeedEntries, SeedKeys

InboxMessage = Registrations | SkippedPages | Answers | Questions | EvidenceBatch | Forget | Expire | SeedEntries
INBOX: Final = MessageRegistry[InboxMessage](
    REGISTRATIONS, SKIPPED, ANSWERS, QUESTIONS, EVIDENCE, ORDERS, SEED_ENTRIES, RETIRED
)
"""Messages to an owner."""

ShardMessage = Probes | SeedKeys
PROBES_TOPIC: Final = MessageRegistry[ShardMessage](PROBES, SEED_KEYS, RETIRED)
"""Messages to a shard partition."""
