"""Pages from files and standard input: JSON lines, msgpack, WARC, Parquet, folders of HTML.

`open_input` selects the reader.
"""

from neardup.inputs.opening import open_input
from neardup.inputs.source import Item, Source

__all__ = ["Item", "Source", "open_input"]
