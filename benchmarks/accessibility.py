"""Faults that axe-core finds in a report, and in pages of the site that ``make docs`` builds.

axe-core (Mozilla Public License 2.0) comes from the npm registry and is kept nowhere. Ends with 1
if it finds a serious or a critical fault.
"""

import json
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from report import open_browser
from sklearn.datasets import load_digits
from timing import write

from heatsketch import HeatSketch
from heatsketch.report import write_report

PACKAGE = "axe-core@4"
SITE = Path(__file__).resolve().parent.parent / "docs" / "_build" / "html"
PAGES = [
    "index.html",
    "installation.html",
    "tutorial/digits.html",
    "how_to/search.html",
    "how_to/labels.html",
    "gallery/index.html",
    "reference/generated/heatsketch.HeatSketch.html",
    "background/usefulness.html",
]
SERIOUS = {"serious", "critical"}
WIDTHS, SCHEMES = (1400, 390), ("light", "dark")
RUN = "const done = arguments[0]; axe.run(document, { resultTypes: ['violations'] }).then(done);"


def axe_core(folder):
    """Return the version and the source of axe-core."""
    packed = subprocess.run(
        ["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, capture_output=True, text=True
    )
    with tarfile.open(folder / packed.stdout.split()[-1]) as archive:
        about = json.load(archive.extractfile("package/package.json"))
        return about["version"], archive.extractfile("package/axe.min.js").read().decode()


def digits_report(folder):
    """Write a report with colours, pictures and a chosen pair, and return its address."""
    X, digit = load_digits(return_X_y=True)
    page, model = folder / "digits.html", HeatSketch().fit(X)
    colors = {"digit": digit, "ink": X.sum(axis=1)}
    write_report(model, page, colors=colors, images=X.reshape(-1, 8, 8), title="Digits")
    return f"{page.as_uri()}#a=3&b=900"


def faults(driver, address, axe, *, width, scheme):
    """Return the violations of a page at a width, in light or dark."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    driver.get("about:blank")
    driver.get(address)
    driver.execute_async_script("setTimeout(arguments[0], 1500)")
    driver.execute_script(axe)
    return driver.execute_async_script(RUN)["violations"]


def check_control(driver, axe):
    """Raise if axe-core does not find a fault where there is one."""
    driver.get("data:text/html,<html lang=en><title>Control</title><main><h1>Control</h1><button>")
    driver.execute_script(axe)
    found = {fault["id"] for fault in driver.execute_async_script(RUN)["violations"]}
    if "button-name" not in found:
        raise AssertionError(f"axe-core finds {found} on a page whose button has no name")


def main():
    if not SITE.exists():
        sys.exit("The site is not built. Remedy: make docs")
    found, serious = {}, 0
    with TemporaryDirectory() as scratch:
        version, axe = axe_core(Path(scratch))
        pages = {"report": digits_report(Path(scratch))}
        pages |= {name: (SITE / name).as_uri() for name in PAGES}
        driver = open_browser()
        try:
            check_control(driver, axe)
            for name, address in pages.items():
                for width in WIDTHS:
                    for scheme in SCHEMES:
                        wrong = faults(driver, address, axe, width=width, scheme=scheme)
                        found[f"{name}, {width}, {scheme}"] = dict(
                            Counter(fault["impact"] for fault in wrong)
                        )
                        for fault in wrong:
                            serious += fault["impact"] in SERIOUS
                            where = fault["nodes"][0]["target"][0]
                            print(name, width, scheme, fault["impact"], fault["help"], where)
        finally:
            driver.quit()
    print(f"{serious} serious faults on {len(found)} views, by axe-core {version}")
    write("accessibility", {"axe-core": version, "faults by impact": found})
    sys.exit(serious > 0)


if __name__ == "__main__":
    main()
