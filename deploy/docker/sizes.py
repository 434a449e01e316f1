"""Sizes of the packages in the image, as a Markdown table.

    python -m deploy.docker.sizes [IMAGE]

The sizes are measured in a container of the image. A package counts as imported if the modules of neardup import it;
otherwise the table names the package that requires it. Python and the system, which are part of the base image, are not
in the table.
"""

import argparse
import json
import subprocess
import sys
from typing import Any

LEAST_MB = 1.0
"""Size in MB below which packages share a row."""

# The program that runs in the container. It omits the Faust apps, which connect on import, and pyspark, an extra.
MEASURE = """
import importlib, json, os, pkgutil, re, sys
from importlib.metadata import distributions
import uvloop, faust, neardup, neardup_services
for package in (neardup, neardup_services):
    for each in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if ".apps" not in each.name and ".spark" not in each.name:
            importlib.import_module(each.name)
canonical = lambda name: re.sub("[-_.]+", "-", name).lower()
used = {name.partition(".")[0] for name in sys.modules}
found, requirers = [], {}
for each in distributions():
    for line in each.requires or ():
        if "extra ==" not in line:
            requirers.setdefault(canonical(re.match("[A-Za-z0-9._-]+", line)[0]), []).append(each.name)
for each in distributions():
    paths = [path for path in each.files or () if os.path.isfile(each.locate_file(path))]
    size = sum(os.path.getsize(each.locate_file(path)) for path in paths)
    tops = {path.parts[0].partition(".")[0] for path in paths}
    by = sorted(requirers.get(canonical(each.name), ()))
    found.append({"name": each.name, "version": each.version, "bytes": size, "imported": bool(tops & used), "by": by})
cache = os.environ["NUMBA_CACHE_DIR"]
kernels = sum(os.path.getsize(os.path.join(top, name)) for top, _, names in os.walk(cache) for name in names)
print(json.dumps({"packages": found, "kernels": kernels}))
"""


def measure(image: str) -> dict[str, Any]:
    """Return the size in bytes and the import status of each package of an image, and the size of its kernels."""
    command = ["docker", "run", "--rm", "--entrypoint", "python", image, "-c", MEASURE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"expected an image of neardup named {image}, got: {done.stderr.strip()}; build it first")
    return dict(json.loads(done.stdout))


def table(found: dict[str, Any]) -> str:
    """Return the table, the largest package first."""
    lines = ["| package | version | MB | imported |", "|---|---|---|---|"]
    small = 0.0
    for each in sorted(found["packages"], key=lambda each: -int(each["bytes"])):
        size = each["bytes"] / 1e6
        if size < LEAST_MB:
            small += size
            continue
        why = "yes" if each["imported"] else f"required by {', '.join(each['by'])}"
        lines.append(f"| {each['name']} | {each['version']} | {size:.1f} | {why} |")
    lines.append(f"| others, each below {LEAST_MB:g} MB | | {small:.1f} | |")
    lines.append(f"| compiled kernels | | {found['kernels'] / 1e6:.1f} | |")
    total = sum(each["bytes"] for each in found["packages"]) + found["kernels"]
    lines.append(f"| all | | {total / 1e6:.1f} | |")
    return "\n".join(lines)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image", nargs="?", default="neardup:0.1.0")
    print(table(measure(parser.parse_args().image)))


if __name__ == "__main__":
    main()
