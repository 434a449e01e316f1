"""Detection of a page's charset, and conversion to UTF-8. Nothing here raises, whatever the bytes or labels are.

The sources are tried in the order of the HTML standard (§13.2.3): the byte order mark, the label from the server, and
the label in the page. A page without a valid label is read as UTF-8 if its bytes are valid UTF-8, and otherwise as
windows-1252, in which every byte is a character.
"""

import re
from typing import Final

_PRESCAN: Final = 1024

_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))

# Python codecs by the labels that occur on the web, as browsers interpret them. Any other label is ignored.
_CODECS: Final[dict[str, str]] = {
    label: codec
    for codec, labels in {
        "utf-8": "utf-8 utf8 unicode-1-1-utf-8 x-unicode20utf8",
        "utf-16-le": "utf-16 utf-16le unicode ucs-2 iso-10646-ucs-2 csunicode",
        "utf-16-be": "utf-16be",
        "cp1252": "windows-1252 cp1252 x-cp1252 iso-8859-1 iso8859-1 iso_8859-1 iso88591 latin1 latin-1 l1 ascii"
        " us-ascii ansi_x3.4-1968 cp819",
        "cp1250": "windows-1250 cp1250 x-cp1250",
        "cp1251": "windows-1251 cp1251 x-cp1251",
        "cp1253": "windows-1253 cp1253 x-cp1253",
        "cp1254": "windows-1254 cp1254 x-cp1254 iso-8859-9 iso8859-9 latin5 l5",
        "cp1255": "windows-1255 cp1255 x-cp1255",
        "cp1256": "windows-1256 cp1256 x-cp1256",
        "cp1257": "windows-1257 cp1257 x-cp1257",
        "cp1258": "windows-1258 cp1258 x-cp1258",
        "cp874": "windows-874 tis-620 iso-8859-11 iso8859-11 dos-874",
        "cp866": "ibm866 cp866 866",
        "iso8859-2": "iso-8859-2 iso8859-2 latin2 l2",
        "iso8859-3": "iso-8859-3 iso8859-3 latin3 l3",
        "iso8859-4": "iso-8859-4 iso8859-4 latin4 l4",
        "iso8859-5": "iso-8859-5 iso8859-5 cyrillic",
        "iso8859-6": "iso-8859-6 iso8859-6 arabic",
        "iso8859-7": "iso-8859-7 iso8859-7 greek",
        "iso8859-8": "iso-8859-8 iso8859-8 iso-8859-8-i hebrew",
        "iso8859-10": "iso-8859-10 iso8859-10 latin6 l6",
        "iso8859-13": "iso-8859-13 iso8859-13",
        "iso8859-14": "iso-8859-14 iso8859-14",
        "iso8859-15": "iso-8859-15 iso8859-15 l9",
        "iso8859-16": "iso-8859-16",
        "koi8-r": "koi8-r koi8 koi koi8_r",
        "koi8-u": "koi8-u koi8-ru",
        "mac-roman": "macintosh mac x-mac-roman",
        "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
        "gb18030": "gb18030 gbk gb2312 gb_2312 gb_2312-80 x-gbk chinese euc-cn",
        "big5hkscs": "big5 big5-hkscs cn-big5 x-x-big5",
        "euc_jp": "euc-jp x-euc-jp",
        "iso2022_jp": "iso-2022-jp",
        "cp932": "shift_jis shift-jis sjis x-sjis windows-31j ms_kanji ms932",
        "cp949": "euc-kr korean ks_c_5601-1987 ksc5601 ksc_5601 windows-949 ks_c_5601-1989",
    }.items()
    for label in labels.split()
}

_META: Final = re.compile(rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([a-z0-9_:.-]{1,40})", re.IGNORECASE)
_XML: Final = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([a-z0-9_:.-]{1,40})", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"charset\s*=\s*[\"']?\s*([^\s;\"']{1,40})", re.IGNORECASE)


def codec_of(label: str | None) -> str | None:
    """Return the codec for a label, or None if browsers do not recognize the label."""
    return None if label is None else _CODECS.get(label.strip().lower())


def charset_of(data: bytes, charset: str | None = None, content_type: str | None = None) -> str:
    """Return the codec that decodes a page. `charset` and `content_type` come from the server's response."""
    for mark, codec in _BOMS:
        if data.startswith(mark):
            return codec
    parameter = _PARAMETER.search(content_type) if content_type else None
    said = codec_of(charset) or (codec_of(parameter[1]) if parameter else None)
    if said is not None:
        return said
    head = data[:_PRESCAN]
    found = _META.search(head) or _XML.search(head)
    meta = codec_of(found[1].decode("ascii")) if found else None
    if meta is not None:
        # The label was found by reading the bytes as ASCII, so the page cannot be in UTF-16 (§13.2.3.2).
        return "utf-8" if meta.startswith("utf-16") else meta
    return "utf-8" if _is_utf8(data) else "cp1252"


def to_utf8(data: bytes, codec: str) -> bytes:
    """Return the text in UTF-8. Invalid UTF-8 is kept: the kernels treat it as separators."""
    if codec == "utf-8":
        return data[3:] if data.startswith(_BOMS[0][0]) else data
    if codec.startswith("utf-16") and data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data[2:]
    return data.decode(codec, "replace").encode("utf-8", "replace")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        # A page that was truncated within its last character still counts as UTF-8.
        return error.reason == "unexpected end of data" and error.start >= len(data) - 4
    return True
