"""Pages that a crawl has many of, told by their words: not found, log in (Manku 2007 §4.2)."""

from dataclasses import dataclass
from typing import Final

MOST_WORDS: Final = 200
"""A longer page has content of its own; that it also says "log in" somewhere means nothing."""

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
    """A fingerprint that many pages have: the url of one of them, and what they seem to be."""

    fingerprint: int
    pages: int
    url: str
    name: str | None

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON. The fingerprint in hexadecimal: it does not fit a JSON number."""
        return {"fingerprint": f"{self.fingerprint:016x}", "pages": self.pages, "url": self.url, "name": self.name}


def name_of(words: list[str]) -> str | None:
    """What a page with these tokens seems to be; None if nothing in particular. The first name that fits is taken."""
    if len(words) > MOST_WORDS:
        return None
    text = f" {' '.join(words)} "
    for name, phrases in _PHRASES.items():
        if any(f" {phrase} " in text for phrase in phrases):
            return name
    return None
