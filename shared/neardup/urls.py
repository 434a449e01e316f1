"""The host that a url names."""

from urllib.parse import urlsplit


def host_of(url: str) -> str | None:
    """In lower case, empty if it names none; None if it cannot be read."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return None


def host_or_url(url: str) -> str:
    """The same, for counting by hosts: what cannot be read is its own."""
    host = host_of(url)
    return url if host is None else host
