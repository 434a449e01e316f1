"""Kinds of pages that are frequent in a crawl, recognised by their words: not found, log in (Manku 2007 §4.2)."""

from dataclasses import dataclass
from typing import Final

MOST_WORDS: Final = 200
"""Maximum length of these pages in words. A longer page has content of its own, even if it also contains "log in"."""

_PHRASES: Final = {
    "not found": (
        "404", "not found", "no longer available", "does not exist", "nicht gefunden", "introuvable", "no encontrada",
        "non trovata", "niet gevonden",
    ),
    "log in": (
        "log in", "login", "sign in", "password", "anmelden", "passwort", "mot de passe", "inloggen", "accedi",
    ),
    "no access": ("403", "forbidden", "access denied", "verify you are human", "enable javascript", "captcha"),
    "server error": ("500", "internal server error", "service unavailable", "bad gateway"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spike:
    """A fingerprint of many pages, with the URL of one of them and their kind."""

    fingerprint: int
    pages: int
    url: str
    name: str | None

    def as_dict(self) -> dict[str, object]:
        """Return values for JSON. The fingerprint is hexadecimal because it exceeds the range of JSON numbers."""
        return {"fingerprint": f"{self.fingerprint:016x}", "pages": self.pages, "url": self.url, "name": self.name}


def name_of(words: list[str]) -> str | None:
    """Return the first kind of page with a phrase among these words, or None."""
    if len(words) > MOST_WORDS:
        return None
    text = f" {' '.join(words)} "
    for name, phrases in _PHRASES.items():
        if any(f" {phrase} " in text for phrase in phrases):
            return name
    return None
