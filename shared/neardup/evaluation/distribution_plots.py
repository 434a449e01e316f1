"""Charts of the distribution of fingerprints, after figure 2 of Manku 2007 and figure 1 of Sood 2011."""

from neardup.evaluation.distribution import BUCKET_BITS, REACH, STEPS, Distribution
from neardup.evaluation.svg_chart import Series, svg_of


def plots(found: Distribution) -> dict[str, str]:
    """Return SVG by file name. Weights are drawn only if they are available."""
    drawn = {"leading.svg": _leading(found), "buckets.svg": _buckets(found)}
    if found.weights.any():
        drawn["weights.svg"] = _weights(found)
    return drawn


def _leading(found: Distribution) -> str:
    shares = found.shares()
    return svg_of(
        [
            Series("fingerprints", [(float(position), share) for position, share, _ in shares]),
            Series("random", [(float(position), random) for position, _, random in shares]),
        ],
        title="Leading 1 in the XOR of neighbouring fingerprints",
        across="position of the bit, from the right",
        up="share of neighbours",
    )


def _buckets(found: Distribution) -> str:
    counts = [(float(place), float(count)) for place, count in enumerate(found.buckets)]
    return svg_of(
        [Series("", counts, "bars")],
        title="Pages in each part of the space",
        across=f"leading {BUCKET_BITS} bits of the fingerprint",
        up="pages",
    )


def _weights(found: Distribution) -> str:
    middles = [(place + 0.5) * 2 * REACH / STEPS - REACH for place in range(STEPS)]
    return svg_of(
        [
            Series(name, list(zip(middles, (counts / max(counts.sum(), 1)).tolist(), strict=True)))
            for name, counts in (("weights", found.weights), ("differences of two pages", found.changes))
        ],
        title="Simhash weights",
        across="weight of a bit, in root mean squares of the page's 64",
        up="share of bits",
    )
