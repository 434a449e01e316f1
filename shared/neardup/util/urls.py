"""Hosts of URLs."""

import re
from typing import Final
from urllib.parse import urlsplit

_PLAIN: Final = re.compile(r"https?://([a-z0-9.-]+)(?:[/?#]|\Z)")
"""Pattern of nearly all URLs; matching it takes a tenth of the time of `urlsplit`."""


def host_of(url: str) -> str | None:
    """Return the host in lower case, an empty string if the URL has none, and None if it cannot be parsed."""
    plain = _PLAIN.match(url)
    if plain is not None:
        return plain[1]
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return None


def host_or_url(url: str) -> str:
    """Return the host, or the whole URL if it cannot be parsed. For counting by host."""
    host = host_of(url)
    return url if host is None else host
