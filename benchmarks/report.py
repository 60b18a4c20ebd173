"""The report of many points: its bytes, its frames a second, and a move of its slider.

Ends with 1 if the page has 40 MB or more, a move takes a second or more of the browser's own time,
a frame takes a twentieth of one while the view moves, the page asks the network for anything, or a
distance is not that of the API.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import numpy as np
from timing import memory, write

from heatsketch import HeatSketch, load
from heatsketch.diffusion import diffusion_distances
from heatsketch.report import write_report

PICTURED = 16  # the diffusion time of the picture
MOST_BYTES, MOST_SECONDS, MOST_OF_FRAME = 40e6, 1.0, 0.05
SWITCHES = ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage")
# Moves the view by a step at each of so many frames, and returns the seconds that took.
PAN = """
const [n, done] = arguments, began = performance.now();
let left = n;
const step = () => {
  if (!left--) return done((performance.now() - began) / 1000);
  panBy(left % 20 < 10 ? 0.002 : -0.002, 0);
  return requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""
MOVE = """
const [time, done] = arguments, began = performance.now();
setTime(time).then(() => requestAnimationFrame(() => done((performance.now() - began) / 1000)));
"""


def tree(n_points, *, n_features=20, n_branches=7, seed=0):
    """Return points along a tree that forks twice, as cells that develop, with their branch."""
    rng = np.random.default_rng(seed)
    ways = np.linalg.qr(rng.standard_normal((n_features, n_branches)))[0].T * 4
    ends = np.zeros((n_branches + 1, n_features))
    for branch in range(n_branches):
        ends[branch + 1] = ends[(branch + 1) // 2] + ways[branch]
    branches = rng.integers(n_branches, size=n_points)
    along = rng.uniform(size=n_points)
    starts = ends[(branches + 1) // 2]
    X = starts + along[:, np.newaxis] * ways[branches]
    X += 0.35 * rng.standard_normal(X.shape)
    depth = np.floor(np.log2(branches + 1)) + along
    return X.astype(np.float32), {"branch": branches + 1, "time": depth}


def open_browser():
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for switch in (*SWITCHES, "window-size=1440,1000"):
        options.add_argument(f"--{switch}")
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    driver = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
    )
    driver.set_page_load_timeout(600)
    driver.set_script_timeout(600)
    return driver


def busy(driver):
    """Return the seconds that the page's thread has computed, whatever else the machine does."""
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def driven(driver, page, model):
    """Open a page, move its slider to all places, and hold a distance against the API's."""
    driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    start = perf_counter()
    driver.get(page.as_uri())
    driver.execute_async_script(
        "const done = arguments[0], ask = () => document.body.dataset.ready ? done() : "
        "setTimeout(ask, 50); ask();"
    )
    opened = {"seconds to open": perf_counter() - start, "seconds to open, computing": busy(driver)}
    moves, computing = [], []
    powers = driver.execute_script("return facts.powers")
    times = [*range(len(powers)), powers.index(PICTURED)]
    for time in times:
        before = busy(driver)
        moves.append(driver.execute_async_script(MOVE, time))
        computing.append(busy(driver) - before)
    i, j = driver.execute_script(
        "return [rows[sketched[7]], rows[sketched[5000 % sketched.length]]]"
    )
    driver.execute_script("pick(sketched[7]); pick(sketched[5000 % sketched.length]);")
    told = driver.execute_async_script(
        "const done = arguments[0]; answer().then(() => done(['estimate', 'low', 'high'].map("
        "(name) => byId(name).textContent)));"
    )
    wanted = [part[0] for part in diffusion_distances(model.sketch_.path([PICTURED])[0], [[i, j]])]
    asked = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = [
        m["params"]["request"]["url"] for m in asked if m["method"] == "Network.requestWillBeSent"
    ]
    return opened | {
        "diffusion times": powers,
        "seconds of a move": moves,
        **panned(driver),
        "seconds of a move, computing": computing,
        "milliseconds of one drawing": driver.execute_script("return cloud.milliseconds"),
        "rows with distances": driver.execute_script("return facts.n_sketched"),
        "told": told,
        "of the API": [f"{value:.3g}" for value in wanted],
        "asked of the network": [url for url in urls if not url.startswith(("file:", "data:"))],
    }


def panned(driver, n_frames=40):
    """Move the view, and return how long a frame takes."""
    before = busy(driver)
    whole = driver.execute_async_script(PAN, n_frames)
    return {
        "seconds of a frame": whole / n_frames,
        "seconds of a frame, computing": (busy(driver) - before) / n_frames,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, help="where to keep model, page and picture")
    given = parser.parse_args()
    with TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        X, colors = tree(given.points)
        name = f"tree-{given.points}"
        model_path, page = folder / f"{name}.heatsketch", folder / f"{name}.html"
        model = load(model_path) if model_path.exists() else HeatSketch().fit(X)
        if not model_path.exists():
            model.save(model_path)
        start, computing = perf_counter(), process_time()
        title = f"A tree of {given.points:,} points"
        write_report(model, page, colors=colors, title=title, overwrite=True)
        found = {
            "points": given.points,
            "bytes": page.stat().st_size,
            "seconds to write": perf_counter() - start,
            "seconds to write, computing": process_time() - computing,
            "highest memory": memory("VmHWM"),
        }
        driver = open_browser()
        try:
            found |= driven(driver, page.resolve(), model)
            driver.save_screenshot(str(folder / f"{name}.png"))
        finally:
            driver.quit()
    write("report", found)
    right = (
        found["bytes"] < MOST_BYTES
        and max(found["seconds of a move, computing"]) < MOST_SECONDS
        and found["seconds of a frame, computing"] < MOST_OF_FRAME
    )
    same = [float(word) for word in found["told"]] == [float(word) for word in found["of the API"]]
    sys.exit(not (right and same and not found["asked of the network"]))


if __name__ == "__main__":
    main()
