"""All errors that neardup raises deliberately.

    NeardupError
    ├── SettingsError          a setting has a wrong value
    ├── RecordError            one record is bad: it goes to dead-letters, and processing continues
    │   ├── InvalidPage        not a page: no url, no content, not decodable
    │   ├── OverLimit          a page with more bytes, nesting or tokens than the settings allow
    │   ├── WrongPlan          a message made with other settings of the fingerprint tables
    │   └── WireError          a message of ours that cannot be read
    │       ├── NotOurs        the magic bytes are missing
    │       ├── Corrupt        the checksum or the structure is wrong (truncated buffers too)
    │       ├── WrongKind      another kind of message than this topic carries
    │       ├── WrongVersion   written by a release with another schema
    │       └── TooLarge       over the limit on bytes or array length
    ├── LogError               the log as a whole cannot be used; the worker stops
    │   ├── BrokerUnreachable  no connection, or refused credentials
    │   ├── NotAuthorized      the user lacks a right on a topic or group
    │   ├── TopicMismatch      a topic is missing or is not as the settings say
    │   ├── SendFailed         an output was not acknowledged
    │   ├── NotAtRest          something still works on what is to be resharded
    │   ├── Retired            the deployment was resharded and continues in other topics
    │   └── LogGap             records that the state still needs are gone from the log
    ├── InputError             a file that a command was given cannot be used
    │   ├── InvalidPair        a line of a file of labelled pairs, or too few of them
    │   ├── InvalidTruth       a line of a truth file, or one that does not fit the verdicts
    │   └── InvalidVerdict     a line of a verdicts file is not a verdict
    └── StateError             a state directory cannot be used
        ├── WrongState         written for another partition, plan or signature version
        ├── NotClustered       no offline pass has made what a question needs
        ├── StateUnavailable   the disk is full, read-only or gone
        └── CorruptState       torn or altered

A worker handles a `RecordError` by sending the record to dead-letters; any other error stops the worker before it
commits. Each message contains what was expected, what was found and what to do.
"""

from typing import ClassVar, Self


class NeardupError(Exception):
    """Base class of all errors that neardup raises deliberately."""


class SettingsError(NeardupError):
    """A setting has a wrong value."""


class RecordError(NeardupError):
    """One record is bad. `reason` is a short fixed word, safe as a metric label."""

    reason: ClassVar[str] = "bad-record"

    def without_frames(self) -> Self:
        """Return the error without its traceback and causes, for keeping.

        Their frames would keep the objects made from this record and earlier ones until the next garbage collection.
        """
        self.__cause__ = self.__context__ = None
        return self.with_traceback(None)


def record_reasons() -> list[str]:
    """Return all reasons that a dead letter may have."""
    found: list[type[RecordError]] = [RecordError]
    for each in found:
        found += each.__subclasses__()
    return sorted({each.reason for each in found})


class InvalidPage(RecordError):
    """The record on the pages topic is not a page."""

    reason = "invalid-page"


class OverLimit(RecordError):
    """The page is over a limit, and the settings say to refuse it rather than to cut it."""

    reason = "over-limit"


class WrongPlan(RecordError):
    """The sender of the message has another plan of the fingerprint tables."""

    reason = "wrong-plan"


class WireError(RecordError):
    """A message of ours cannot be read."""

    reason = "wire"


class NotOurs(WireError):
    """The buffer does not start with our magic bytes."""

    reason = "not-ours"


class Corrupt(WireError):
    """Checksum, length or structure is wrong."""

    reason = "corrupt"


class WrongKind(WireError):
    """A well-formed message that does not belong on this topic."""

    reason = "wrong-kind"


class WrongVersion(WireError):
    """A message with a schema version that this release does not read."""

    reason = "wrong-version"


class TooLarge(WireError):
    """A message or an array in it is over the limit."""

    reason = "too-large"


class LogError(NeardupError):
    """The log as a whole cannot be used."""


class BrokerUnreachable(LogError):
    """No broker answered, or it refused the credentials."""


class NotAuthorized(LogError):
    """The user lacks a right on a topic or group."""


class TopicMismatch(LogError):
    """A topic is missing, or has another partition count than the settings say."""


class SendFailed(LogError):
    """An output was not acknowledged in time."""


class NotAtRest(LogError):
    """Workers run, or records wait, where nothing may move."""


class Retired(LogError):
    """The log ends here: the deployment was resharded and goes on in the next generation of its topics."""


class LogGap(LogError):
    """The log no longer holds the records after the offset that the state reached."""


class InputError(NeardupError):
    """A file that a command was given cannot be used."""


class InvalidPair(InputError):
    """A line of a file of labelled pairs is no pair, or the pairs do not do for what was asked."""


class InvalidTruth(InputError):
    """A line of a truth file is not the truth of a page, or not of these pages."""


class InvalidVerdict(InputError):
    """A line of a verdicts file is not a verdict."""


class StateError(NeardupError):
    """A state directory cannot be used."""


class WrongState(StateError):
    """The state was written for something else."""


class NotClustered(StateError):
    """The offline pass has not run yet, or did not keep what the question needs."""


class StateUnavailable(StateError):
    """The state directory cannot be read or written."""


class CorruptState(StateError):
    """The state is torn or was altered."""
