"""The host of a url."""

from urllib.parse import urlsplit


def host_of(url: str) -> str:
    """In lower case; what cannot be read is its own host."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return url
