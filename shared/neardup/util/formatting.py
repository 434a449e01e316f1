"""Formatting of numbers, and of text from outside, for output."""


def printable(text: str) -> str:
    """Replace unprintable characters by escapes, as they may be invisible or control the terminal."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def shortened(text: str, most: int) -> str:
    """Shorten a text to at most `most` characters. A shortened text ends with an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


def format_bytes(count: float) -> str:
    """Format a number of bytes with a decimal unit: 1 KB is 1000 bytes."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def format_seconds(seconds: float) -> str:
    """Format a duration: in seconds, in minutes and seconds from 2 min on, in hours and minutes from 2 h on."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def rounded(value: float | None) -> float | None:
    """Round an estimate to four digits, the most that is meaningful."""
    return None if value is None else round(value, 4)
