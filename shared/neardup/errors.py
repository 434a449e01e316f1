"""All exceptions that neardup raises deliberately.

    NeardupError
    ├── SettingsError          a setting has an invalid value
    ├── RecordError            one record cannot be processed; it is sent to dead-letters
    │   ├── InvalidPage        not a page: no URL, no content, or not decodable
    │   ├── OverLimit          a page with more bytes, nesting or tokens than the settings allow
    │   ├── WrongPlan          a message from a worker with other settings of the fingerprint tables
    │   └── WireError          a message of neardup that cannot be decoded
    │       ├── NotOurs        the magic bytes are missing
    │       ├── Corrupt        the checksum or the structure is wrong, or the message is truncated
    │       ├── WrongKind      a kind of message that does not belong on this topic
    │       ├── WrongVersion   a schema version that this release cannot decode
    │       └── TooLarge       over the limit on bytes or array length
    ├── LogError               the log as a whole cannot be used; the worker stops
    │   ├── BrokerUnreachable  no connection, or rejected credentials
    │   ├── NotAuthorized      the user lacks a right on the broker
    │   ├── TopicMismatch      a topic is missing or differs from the settings
    │   ├── SendFailed         an output was not acknowledged
    │   ├── NotAtRest          the deployment to be resharded is not idle
    │   ├── Retired            the topics were replaced by a resharding
    │   └── LogGap             the log no longer holds records that the state still needs
    ├── InputError             an input file of a command cannot be used
    │   ├── InvalidPair        a line is not a labelled pair, or there are too few pairs
    │   ├── InvalidTruth       a line is not the truth of a page, or does not match the verdicts
    │   └── InvalidVerdict     a line is not a verdict
    └── StateError             a state directory cannot be used
        ├── WrongState         written for another partition, plan or signature version
        ├── NotClustered       no offline pass has written the results that a query needs
        ├── StateInUse         another process, or another object of this process, uses the state directory
        ├── StateUnavailable   the disk is full, read-only or missing
        └── CorruptState       truncated or altered files

A worker handles them by class: a `RecordError` costs one record, any other exception stops the worker before it
commits. Every message states what was expected, what was found, and what to do.
"""

from typing import ClassVar, Self


class NeardupError(Exception):
    """Base class of all exceptions that neardup raises deliberately."""


class SettingsError(NeardupError):
    """A setting has an invalid value."""


class RecordError(NeardupError):
    """One record cannot be processed. `reason` is a fixed word that also serves as the value of a metric label."""

    reason: ClassVar[str] = "bad-record"

    def without_frames(self) -> Self:
        """Drop the traceback and the causes, and return the error.

        An error that is stored would otherwise keep everything decoded from the record alive through its frames, until
        the garbage collector runs.
        """
        self.__cause__ = self.__context__ = None
        return self.with_traceback(None)


def record_reasons() -> list[str]:
    """Return all reasons of dead letters, sorted."""
    found: list[type[RecordError]] = [RecordError]
    for each in found:
        found += each.__subclasses__()
    return sorted({each.reason for each in found})


class InvalidPage(RecordError):
    """A record on the pages topic is not a page."""

    reason = "invalid-page"


class OverLimit(RecordError):
    """A page exceeds a limit, and NEARDUP_OVER_LIMIT is set to reject."""

    reason = "over-limit"


class WrongPlan(RecordError):
    """The sender of a message has another plan of the fingerprint tables."""

    reason = "wrong-plan"


class WireError(RecordError):
    """A message of neardup cannot be decoded."""

    reason = "wire"


class NotOurs(WireError):
    """A buffer does not start with the magic bytes of neardup."""

    reason = "not-ours"


class Corrupt(WireError):
    """The checksum, the length or the structure of a message is wrong."""

    reason = "corrupt"


class WrongKind(WireError):
    """A well-formed message that does not belong on this topic."""

    reason = "wrong-kind"


class WrongVersion(WireError):
    """A message has a schema version that this release cannot decode."""

    reason = "wrong-version"


class TooLarge(WireError):
    """A message, or an array in it, is larger than the limit."""

    reason = "too-large"


class LogError(NeardupError):
    """The log as a whole cannot be used."""


class BrokerUnreachable(LogError):
    """No broker answered, or the broker rejected the credentials."""


class NotAuthorized(LogError):
    """The user lacks a right on a topic or a consumer group."""


class TopicMismatch(LogError):
    """A topic is missing, or its partitions or replicas differ from the settings."""


class SendFailed(LogError):
    """An output was not acknowledged in time."""


class NotAtRest(LogError):
    """Workers are running or records are waiting, although the operation needs an idle deployment."""


class Retired(LogError):
    """The deployment was resharded, and its state continues in the next generation of its topics."""


class LogGap(LogError):
    """The log no longer holds the records that follow the offset of the state."""


class InputError(NeardupError):
    """An input file of a command cannot be used."""


class InvalidPair(InputError):
    """A line is not a labelled pair, or there are too few pairs for the requested evaluation."""


class InvalidTruth(InputError):
    """A line of a truth file is not the truth of a page, or its page has no verdict."""


class InvalidVerdict(InputError):
    """A line of a verdicts file is not a verdict."""


class StateError(NeardupError):
    """A state directory cannot be used."""


class WrongState(StateError):
    """The state was written for another partition, plan or signature version."""


class NotClustered(StateError):
    """No offline pass has run yet, or its results lack the part that a query needs."""


class StateInUse(StateError):
    """Another process, or another object of this process, uses the state directory."""


class StateUnavailable(StateError):
    """The state directory cannot be read or written."""


class CorruptState(StateError):
    """Files of the state are truncated or altered."""
