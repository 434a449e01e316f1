from neardup.embedded.summary import Tally, VerdictFields


def verdict(number: int, kind: str, relation: str | None = None) -> VerdictFields:
    return {"document": f"0:{number}", "verdict": kind, "relation": relation}


def test_the_last_verdict_on_a_page_counts() -> None:
    tally = Tally(first=100)
    for number, size in enumerate((1000, 200, 30, 4)):
        tally.add_page(f"https://{'ab'[number % 2]}.example/{number}", size)
    tally.add_verdict(verdict(100, "unique"))
    tally.add_verdict(verdict(101, "unique"))
    tally.add_verdict(verdict(101, "duplicate", "near"))
    tally.add_verdict(verdict(102, "skipped"))
    tally.add_verdict(verdict(103, "duplicate", "identical"))
    tally.add_verdict(verdict(7, "duplicate", "near"))  # of an earlier run
    tally.rejected = 2
    summary = tally.summary()
    assert (summary.pages, summary.bytes, summary.duplicate_bytes) == (4, 1234, 204)
    assert summary.by_kind == {"unique": 1, "duplicate": 2, "skipped": 1}
    assert summary.by_relation == {"identical": 1, "same-text": 0, "same-shingles": 0, "near": 1, "contained": 0}
    assert summary.hosts == [("b.example", 2)]
    assert summary.lines() == [
        "4 pages: 1 unique, 2 duplicate, 1 skipped",
        "duplicates: 1 identical, 1 near",
        "bytes: 1.2 KB, of which 204 B (17%) are duplicates",
        "not usable: 2",
        "hosts with most duplicates:",
        "  b.example: 2",
    ]


def test_a_run_without_pages_has_a_summary() -> None:
    assert Tally(0).summary().lines()[0] == "0 pages: nothing"


def test_invalid_urls_are_harmless() -> None:
    tally = Tally(0)
    for url in ("http://[", "no url", "file:///a", "http://[::1]/x"):
        tally.add_page(url, 1)
    assert tally.summary().pages == 4
