"""Numbers and foreign texts as people read them."""


def printable(text: str) -> str:
    """With escapes in place of characters that a terminal would follow or a reader would not see."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def shortened(text: str, most: int) -> str:
    """At most so many characters, with a sign where some are left out."""
    return text if len(text) <= most else text[: most - 1] + "…"


def bytes_in_words(count: float) -> str:
    """With a unit."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def seconds_in_words(seconds: float) -> str:
    """Of a few digits, in seconds, or in minutes and hours if there are many."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def rounded(value: float | None) -> float | None:
    """An estimate, to the digits that it may have."""
    return None if value is None else round(value, 4)
