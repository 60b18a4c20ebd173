"""The report: what its page says, in a browser, is what the API says."""

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from browser import needs_browser, open_browser, requested
from registry import SEEDS, circle, two_blobs

from heatsketch import DiffusionMap, HeatGraph, HeatSketch, sketch
from heatsketch.diffusion import diffusion_distances
from heatsketch.exceptions import HeatSketchError, OutputExistsError, TrainingDataError
from heatsketch.report import write_report
from heatsketch.report._columns import MOST_KINDS, color_columns
from heatsketch.report._page import plane_of

HOSTILE = "</script><img src=x onerror=\"document.body.dataset.broken='yes'\"><b>&amp;\u2028'\\"
N = 200


@pytest.fixture(scope="module")
def browser():
    driver = open_browser()
    yield driver
    driver.quit()


def opened(driver, path):
    driver.get(path.as_uri())
    wait(driver, "return document.body.dataset.ready === 'yes'")


def wait(driver, condition):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 60, poll_frequency=0.05).until(lambda d: d.execute_script(condition))


def element(driver, name):
    return driver.find_element("id", name)


def numbers(driver):
    """Return distance, low and high as shown, and as they are kept."""
    found = [element(driver, name) for name in ("estimate", "low", "high")]
    return [part.text for part in found], [float(part.get_attribute("value")) for part in found]


def click_at(driver, row):
    from selenium.webdriver import ActionChains

    place = driver.execute_script(f"return cloud.place({row})")
    canvas = element(driver, "cloud")
    x, y = place["x"] - canvas.size["width"] / 2, place["y"] - canvas.size["height"] / 2
    ActionChains(driver).move_to_element_with_offset(canvas, round(x), round(y)).click().perform()


def pixels(driver):
    return driver.execute_script("return document.getElementById('cloud').toDataURL()")


# --- in the browser -------------------------------------------------------------------------


@needs_browser
@pytest.mark.parametrize("seed", SEEDS)
def test_two_clicks_say_the_distance_of_the_api_at_every_time(browser, tmp_path, seed):
    from selenium.webdriver import Keys

    X = circle(N, seed)
    model = HeatSketch(32, power=4, random_state=seed).fit(X)
    write_report(model, tmp_path / "page.html", powers=[1, 16], confidence=0.9)
    requested(browser)
    opened(browser, tmp_path / "page.html")
    before = pixels(browser)
    for row in (3, 120):
        click_at(browser, row)
    rows = [int(element(browser, name).get_attribute("value")) for name in ("first", "second")]
    # A neighbour may have covered the point, but not one that is elsewhere.
    assert np.linalg.norm(X[rows] - X[[3, 120]], axis=1).max() < 0.2
    slider = element(browser, "time")
    for key, power in (("", 4), (Keys.ARROW_RIGHT, 16), (Keys.HOME, 1), (Keys.ARROW_RIGHT, 4)):
        slider.send_keys(key)
        wait(browser, f"return document.body.dataset.power === '{power}'")
        wait(browser, f"return document.getElementById('at').textContent === 'p = {power}'")
        Y = model.embedding_ if power == 4 else model.sketch_.path([power])[0]
        wanted = diffusion_distances(Y, [rows], confidence=0.9, **model.sketch_._law)
        wanted = [float(part[0]) for part in wanted]
        shown, kept = numbers(browser)
        np.testing.assert_allclose(kept, wanted, rtol=1e-6)
        assert [float(text) for text in shown] == [float(f"{value:.2e}") for value in wanted]
    assert pixels(browser) != before
    page, *others = requested(browser)
    assert page == (tmp_path / "page.html").as_uri()
    assert all(url.startswith("data:") for url in others)


def test_columns_are_labels_or_values():
    colors = {
        "text": ["b", "a", None],
        "whole": [2, 10, 2],
        "real": [2.0, 10.0, np.nan],
        "numbers as text": ["2", "10", ""],
        "reals as text": ["2.5", "10", ""],
        "truth": [True, False, True],
    }
    columns = {column.name: column for column in color_columns(colors, 3)}
    assert columns["text"].kinds == ("a", "b")
    assert columns["text"].data.tolist() == [1, 0, 255]
    assert columns["whole"].kinds == columns["numbers as text"].kinds == ("2", "10")
    assert columns["truth"].kinds == ("False", "True")
    for name in ("real", "reals as text"):
        assert columns[name].kinds is None
        assert np.isnan(columns[name].data[2])
    words = [f"w{i:02}" for i in range(40)] + ["w39", "w38"]
    (many,) = color_columns({"many": words}, 42)
    assert len(many.kinds) == MOST_KINDS
    assert many.kinds[-1] == "17 others"
    assert {"w38", "w39"} < set(many.kinds)


@needs_browser
def test_text_of_a_table_stays_text(browser, tmp_path):
    X = circle(N)
    names = [f"{HOSTILE} {row}" for row in range(N)]
    colors = {HOSTILE: [HOSTILE, "plain"] * (N // 2)}
    page = tmp_path / "page.html"
    write_report(HeatSketch(8).fit(X), page, colors=colors, names=names, title=HOSTILE)
    opened(browser, page)
    browser.execute_script("pick(0); pick(1);")
    assert browser.title == HOSTILE
    assert element(browser, "title").get_property("textContent") == HOSTILE
    assert element(browser, "first").get_property("value") == names[0]
    legend = element(browser, "legend").find_element("css selector", "button span")
    assert legend.get_property("textContent") == HOSTILE
    assert browser.execute_script("return document.body.dataset.broken") is None
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0


@needs_browser
def test_the_page_cannot_ask_the_network_nor_run_what_is_not_its_own(browser, tmp_path):
    """The control of the tests above: what they look for would have been rejected, and seen."""
    write_report(HeatSketch(8).fit(circle(N)), tmp_path / "page.html")
    opened(browser, tmp_path / "page.html")
    requested(browser)
    rejected = browser.execute_async_script(
        "const done = arguments[0];"
        "document.addEventListener('securitypolicyviolation', (e) => done(e.effectiveDirective));"
        "fetch('http://127.0.0.1:9/').catch(() => {});"
    )
    assert rejected == "connect-src"
    browser.execute_script(
        "const button = document.createElement('button');"
        "button.setAttribute('onclick', \"document.body.dataset.broken = 'yes'\");"
        "document.body.append(button); button.click();"
    )
    assert browser.execute_script("return document.body.dataset.broken") is None
    assert not [url for url in requested(browser) if url.startswith("http")]


def value(driver, name):
    return element(driver, name).get_property("value")


def keys(driver, *pressed):
    """Press keys where the focus is."""
    from selenium.webdriver import ActionChains

    chain = ActionChains(driver)
    for key in pressed:
        chain.send_keys(key)
    chain.perform()


def focus(driver, name):
    """Bring the focus to an element by the tabulator alone."""
    from selenium.webdriver import Keys

    driver.execute_script("document.activeElement.blur()")
    for _ in range(60):
        keys(driver, Keys.TAB)
        if driver.switch_to.active_element.get_attribute("id") == name:
            return
    raise AssertionError(f"no way to {name} by keys")


@pytest.fixture(scope="module")
def blobs(tmp_path_factory):
    """A page with names, two columns and a picture of each point."""
    X = two_blobs(N, 2.0)
    made = sketch(HeatGraph.from_points(X), 32, power=4)
    page = tmp_path_factory.mktemp("report") / "page.html"
    colors = {"side": np.where(np.arange(N) < N // 2, "right", "left"), "x": X[:, 0]}
    images = np.arange(N * 6, dtype=np.uint8).reshape(N, 2, 3)
    names = [f"cell {row}" for row in range(N)]
    write_report(made, page, colors=colors, names=names, images=images, powers=[1, 16])
    return made, page, X


def test_the_picture_is_the_diffusion_map(blobs):
    """Two blobs lie apart along the first axis, which is an eigenvector of the dense operator."""
    made, _, _ = blobs
    points, eigenvalues = plane_of(made)
    A = made.graph.operator
    values, vectors = np.linalg.eigh(A @ np.eye(N))
    np.testing.assert_allclose(eigenvalues, values[[-2, -3]], atol=1e-5)
    ours = made.graph.inner(points) * A.stationary[:, np.newaxis]
    ours /= np.linalg.norm(ours, axis=0)
    np.testing.assert_allclose(np.abs(vectors[:, [-2, -3]].T @ ours), np.eye(2), atol=1e-3)
    with pytest.warns(UserWarning, match="3 connected components"):
        apart = HeatGraph.from_points(
            np.concatenate([circle(30) + 1e3 * i for i in range(3)]), n_neighbors=5
        )
    assert len(np.unique(plane_of(sketch(apart, 8)).points.round(9), axis=0)) > 60


@needs_browser
def test_colours_and_neighbours_follow_the_distance_from_a(browser, blobs):
    from selenium.webdriver.support.ui import Select

    made, page, _ = blobs
    opened(browser, page)
    Select(element(browser, "color")).select_by_visible_text("distance from A")
    assert "Pick a point A" in element(browser, "legend").text
    before = pixels(browser)
    click_at(browser, 7)
    wait(browser, "return document.querySelectorAll('#neighbors li').length === 10")
    row = int(value(browser, "first").removeprefix("cell "))
    far = made.distances([[row, other] for other in range(N)]).distance
    assert element(browser, "legend").text.split()[0] == "0"
    high = np.sort(far)[int(0.95 * (N - 1))]  # beyond which a colour is the last
    assert element(browser, "legend").text.split()[1] == "≥"
    assert float(element(browser, "legend").text.split()[2]) == float(f"{high:.2e}")
    assert pixels(browser) != before
    listed = element(browser, "neighbors").find_elements("css selector", "button")
    wanted = [f"cell {other}" for other in np.argsort(far) if other != row][:10]
    assert [button.text for button in listed] == wanted
    listed[2].click()
    wait(browser, f"return document.getElementById('second').value === '{wanted[2]}'")
    distance = made.distances([[row, int(wanted[2].split()[1])]]).distance[0]
    wait(browser, "return !document.getElementById('answer').hidden")
    assert float(numbers(browser)[0][0]) == float(f"{distance:.2e}")
    shown = pixels(browser)
    browser.execute_script("return setTime(0)")
    assert pixels(browser) != shown


@needs_browser
def test_a_lasso_selects_and_tables_and_pictures_are_saved(browser, blobs, tmp_path):
    from selenium.webdriver import ActionChains

    _, page, X = blobs
    opened(browser, page)
    folder = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", folder)
    before = pixels(browser)
    element(browser, "lasso").click()
    canvas = element(browser, "cloud")
    wide, high = canvas.size["width"] - 4, canvas.size["height"] - 4
    chain = ActionChains(browser).move_to_element_with_offset(canvas, -wide // 2, -high // 2)
    chain.click_and_hold()
    for x, y in ((wide // 2, 0), (0, high), (-(wide // 2), 0)):  # the left half
        chain.move_by_offset(x, y)
    chain.release().perform()
    chosen = np.array(browser.execute_script("return Array.from(cloud.chosen)"), bool)
    assert element(browser, "selected").text == f"{chosen.sum()} selected"
    left = np.array(
        browser.execute_script("return rows.length && Array.from(rows, (_, i) => cloud.place(i).x)")
    )
    assert (chosen == (left < canvas.size["width"] / 2)).mean() > 0.97
    assert pixels(browser) != before
    element(browser, "table").click()
    element(browser, "png").click()
    for _ in range(100):
        if len(list(tmp_path.glob("points.*"))) == 2 and not list(tmp_path.glob("*.crdownload")):
            break
        time.sleep(0.1)
    table = pd.read_csv(tmp_path / "points.csv")
    assert table["row"].tolist() == np.flatnonzero(chosen).tolist()
    assert table["name"].tolist() == [f"cell {row}" for row in table["row"]]
    np.testing.assert_allclose(table["x"], X[chosen, 0], rtol=1e-5)
    assert (tmp_path / "points.png").read_bytes()[:4] == b"\x89PNG"
    element(browser, "lasso").click()
    element(browser, "clear").click()
    assert pixels(browser) == before


# --- what goes into it ----------------------------------------------------------------------


def test_only_a_sketch_with_its_training_data_has_a_report(tmp_path):
    X, page = circle(30), tmp_path / "page.html"
    with pytest.raises(HeatSketchError, match="model"):
        write_report(DiffusionMap(2).fit(X), page)
    made = sketch(HeatGraph.from_points(X), 4)
    for name, value in {
        "powers": [0, 1],
        "names": ["a", "b"],
        "colors": np.ones(30),
        "confidence": 95,
        "images": np.ones((30, 2)),
    }.items():
        with pytest.raises(HeatSketchError, match=name):
            write_report(made, page, **{name: value})
    with pytest.raises(HeatSketchError, match="kind"):
        write_report(made, page, colors={"kind": ["a", "b"]})
    assert not page.exists()
    write_report(made, page)
    with pytest.raises(OutputExistsError):
        write_report(made, page)
    with pytest.raises(TrainingDataError):
        write_report(replace(made, graph=None), page, overwrite=True)


X, WEIGHTS = circle(60), np.exp(-np.square(np.subtract.outer(*2 * [np.arange(30.0)])))
SKETCHES = {
    "one component": lambda: sketch(HeatGraph.from_points(X), 1),
    "two components": lambda: sketch(HeatGraph.from_points(X), 2, power=3),
    "bandwidth": lambda: sketch(HeatGraph.from_points(X, weights=0.3), 8),
    "gaussian": lambda: sketch(HeatGraph.from_points(X, weights="gaussian", n_neighbors=None), 8),
    "paper": lambda: sketch(
        HeatGraph.from_points(X), 8, power=4, stationary="keep", weighting="symmetric"
    ),
    "large power": lambda: sketch(HeatGraph.from_points(X, metric="cosine"), 8, power=300),
    "weights": lambda: sketch(HeatGraph.from_affinity(WEIGHTS), 8),
    "parts": lambda: sketch(HeatGraph.from_points(two_blobs(60, 100.0), n_neighbors=5), 8),
    "model": lambda: HeatSketch(8, normalization="bistochastic", n_neighbors=9).fit(X),
}


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
@pytest.mark.parametrize("kind", SKETCHES)
def test_every_kind_of_sketch_has_a_report(tmp_path, kind):
    write_report(SKETCHES[kind](), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(page) > 20_000
    assert ("connected component" in page.partition('"colors":')[2][:100]) == (kind == "parts")
