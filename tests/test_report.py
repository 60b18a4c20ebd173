"""The report: what its page says, in a browser, is what the API says."""

import time

import numpy as np
import pandas as pd
import pytest
from browser import needs_browser, open_browser, requested
from registry import SEEDS, circle, two_blobs

from heatsketch import DiffusionMap, HeatSketch
from heatsketch.diffusion import diffusion_distances
from heatsketch.exceptions import HeatSketchError, OutputExistsError, TrainingDataError
from heatsketch.report import write_report
from heatsketch.report._columns import MOST_KINDS, color_columns
from heatsketch.report._images import check_images
from heatsketch.report._packing import rounded_rows
from heatsketch.report._page import PAGE_BYTES, _rows
from heatsketch.report._pictures import plane_of

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
        Y = model.embedding_ if power == 4 else model.path([power])[0]
        wanted = [float(part[0]) for part in diffusion_distances(Y, [rows], confidence=0.9)]
        shown, kept = numbers(browser)
        np.testing.assert_allclose(kept, wanted, rtol=1e-6)
        assert [float(text) for text in shown] == [float(f"{value:.2e}") for value in wanted]
    assert pixels(browser) != before
    page, *others = requested(browser)
    assert page == (tmp_path / "page.html").as_uri()
    assert all(url.startswith("data:") for url in others)


@needs_browser
def test_colours_follow_the_column(browser, tmp_path):
    from selenium.webdriver.support.ui import Select

    X = two_blobs(N, 2.0)
    colors = {"side": np.where(np.arange(N) < N // 2, "right", "left"), "x": X[:, 0]}
    write_report(HeatSketch(16).fit(X), tmp_path / "page.html", colors=colors)
    opened(browser, tmp_path / "page.html")
    assert element(browser, "legend").text.split() == ["left", "right"]
    seen = [pixels(browser)]
    for name, column in (("x", 1), ("nothing", -1)):
        Select(element(browser, "color")).select_by_visible_text(name)
        wait(browser, f"return document.body.dataset.column === '{column}'")
        seen.append(pixels(browser))
    assert len(set(seen)) == 3
    Select(element(browser, "color")).select_by_visible_text("side")
    wait(browser, "return document.body.dataset.column === '0'")
    assert pixels(browser) == seen[0]
    element(browser, "legend").find_element("css selector", "button").click()
    assert pixels(browser) not in seen
    assert element(browser, "legend").location["y"] < element(browser, "frame").location["y"]


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


def test_labels_may_be_missing_in_any_way():
    labels = pd.array(["b", None, "a"], dtype="string")
    (column,) = color_columns({"kind": labels}, 3)
    assert (column.kinds, column.data.tolist()) == (("a", "b"), [1, 255, 0])


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


@needs_browser
def test_of_many_points_some_have_distances_and_the_page_says_which(browser, tmp_path, monkeypatch):
    monkeypatch.setattr("heatsketch.report._page.PAGE_BYTES", 0)
    monkeypatch.setattr("heatsketch.report._page.FEWEST_ROWS", 50)
    model = HeatSketch(32, power=4).fit(circle(N))
    write_report(model, tmp_path / "page.html", powers=[1, 16])
    opened(browser, tmp_path / "page.html")
    assert "50 points" in element(browser, "how").text
    sketched = browser.execute_script("return Array.from(sketched)")
    assert len(sketched) == 50
    first, second = element(browser, "first"), element(browser, "second")
    first.send_keys(str(sketched[0]))
    second.send_keys(str(sketched[40]), "\t")
    wait(browser, "return !document.getElementById('answer').hidden")
    wait(browser, "return document.getElementById('estimate').textContent !== ''")
    wanted = model.diffusion_distances([[sketched[0], sketched[40]]])
    shown, _ = numbers(browser)
    assert [float(text) for text in shown] == [float(f"{part[0]:.2e}") for part in wanted]
    other = next(row for row in range(N) if row not in sketched)
    second.clear()
    second.send_keys(str(other), "\t")
    assert "is not among the 50 rows" in element(browser, "error").text


@needs_browser
def test_rows_are_found_by_name_and_signs_may_have_no_upper_end(browser, tmp_path):
    model = HeatSketch(4, random_matrix="rademacher", power=2).fit(circle(N))
    names = [f"cell {row}" for row in range(N)]
    write_report(model, tmp_path / "page.html", names=names)
    opened(browser, tmp_path / "page.html")
    element(browser, "first").send_keys("cell 5")
    element(browser, "second").send_keys("cell 9", "\t")
    wait(browser, "return document.getElementById('high').textContent !== ''")
    assert element(browser, "high").text == "∞"
    distance = model.diffusion_distances([[5, 9]]).distance[0]
    assert float(numbers(browser)[0][0]) == float(f"{distance:.2e}")
    element(browser, "first").send_keys("x", "\t")
    assert element(browser, "error").text == "There is no row cell 5x."


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
    model = HeatSketch(32, power=4).fit(X)
    page = tmp_path_factory.mktemp("report") / "page.html"
    colors = {"side": np.where(np.arange(N) < N // 2, "right", "left"), "x": X[:, 0]}
    images = np.arange(N * 6, dtype=np.uint8).reshape(N, 2, 3)
    names = [f"cell {row}" for row in range(N)]
    write_report(model, page, colors=colors, names=names, images=images, powers=[1, 16])
    return model, page, X


def test_the_picture_is_the_diffusion_map(blobs):
    """Two blobs lie apart along the first axis, which is an eigenvector of the dense operator."""
    model, _, _ = blobs
    points, eigenvalues = plane_of(model)
    A = model.heat_operator_
    values, vectors = np.linalg.eigh(A @ np.eye(N))
    np.testing.assert_allclose(eigenvalues, values[[-2, -3]], atol=1e-5)
    ours = points[model.order_] * A.stationary[:, np.newaxis]
    ours /= np.linalg.norm(ours, axis=0)
    np.testing.assert_allclose(np.abs(vectors[:, [-2, -3]].T @ ours), np.eye(2), atol=1e-3)
    with pytest.warns(UserWarning, match="3 connected components"):
        apart = HeatSketch(8, n_neighbors=5).fit(
            np.concatenate([X + 1e3 * np.arange(3)[i] for i, X in enumerate(3 * [circle(30)])])
        )
    assert len(np.unique(plane_of(apart).points.round(9), axis=0)) > 60


@needs_browser
def test_colours_and_neighbours_follow_the_distance_from_a(browser, blobs):
    from selenium.webdriver.support.ui import Select

    model, page, _ = blobs
    opened(browser, page)
    Select(element(browser, "color")).select_by_visible_text("distance from A")
    assert "Pick a point A" in element(browser, "legend").text
    before = pixels(browser)
    click_at(browser, 7)
    wait(browser, "return document.querySelectorAll('#neighbors li').length === 10")
    row = int(value(browser, "first").removeprefix("cell "))
    far = model.diffusion_distances([[row, other] for other in range(N)]).distance
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
    distance = model.diffusion_distances([[row, int(wanted[2].split()[1])]]).distance[0]
    wait(browser, "return !document.getElementById('answer').hidden")
    assert float(numbers(browser)[0][0]) == float(f"{distance:.2e}")
    shown = pixels(browser)
    browser.execute_script("return setTime(0)")
    assert pixels(browser) != shown


@needs_browser
def test_names_are_completed_and_clearing_a_leaves_b(browser, blobs):
    from selenium.webdriver import Keys

    _, page, _ = blobs
    opened(browser, page)
    element(browser, "first").send_keys("CELL 19")
    offered = browser.execute_script(
        "return Array.from(document.getElementById('known').options, (o) => o.value)"
    )
    assert offered == ["cell 19", *(f"cell {row}" for row in range(190, 200))]
    element(browser, "first").send_keys("9", Keys.TAB)
    element(browser, "second").send_keys("cell 3", Keys.TAB)
    wait(browser, "return !document.getElementById('answer').hidden")
    first = element(browser, "first")
    first.send_keys(Keys.CONTROL, "a")
    first.send_keys(Keys.DELETE, Keys.TAB)
    wait(browser, "return document.getElementById('answer').hidden")
    assert (value(browser, "first"), value(browser, "second")) == ("", "cell 3")
    assert element(browser, "near").is_displayed() is False


@needs_browser
def test_a_tooltip_has_all_columns_and_the_picture(browser, blobs):
    from selenium.webdriver import ActionChains

    _, page, X = blobs
    opened(browser, page)
    place = browser.execute_script("return cloud.place(11)")
    canvas = element(browser, "cloud")
    x, y = place["x"] - canvas.size["width"] / 2, place["y"] - canvas.size["height"] / 2
    ActionChains(browser).move_to_element_with_offset(canvas, round(x), round(y)).perform()
    name, side, along = element(browser, "tip").text.splitlines()
    row = int(name.removeprefix("cell "))
    assert np.linalg.norm(X[row] - X[11]) < 0.3
    assert side == f"side: {'right' if row < N // 2 else 'left'}"
    assert float(along.removeprefix("x: ")) == float(f"{X[row, 0]:.3g}")
    drawn = browser.execute_script(
        "const c = document.querySelector('#tip canvas');"
        "return Array.from(c.getContext('2d').getImageData(0, 0, 3, 2).data)"
    )
    assert drawn[::4] == [(6 * row + i) % 256 for i in range(6)]


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


@needs_browser
def test_size_opacity_and_view_are_in_the_address_with_all_else(browser, blobs):
    from selenium.webdriver import Keys

    _, page, _ = blobs
    opened(browser, page)
    seen = [pixels(browser)]
    for name in ("size", "opacity"):
        element(browser, name).send_keys(Keys.ARROW_RIGHT * 4)
        wait(browser, f"return new URLSearchParams(location.hash.slice(1)).get('{name}') === '1.4'")
        seen.append(pixels(browser))
    element(browser, "closer").click()
    wait(browser, "return location.hash.includes('view=0_0_1.5')")
    seen.append(pixels(browser))
    browser.execute_script(
        "return setColor(1).then(() => setTime(2)).then(() => pick(4)).then(() => pick(180))"
    )
    assert len(set(seen)) == 4
    address, shown = browser.current_url, pixels(browser)
    assert address.endswith("#time=16&color=1&a=4&b=180&view=0_0_1.5&size=1.4&opacity=1.4")
    browser.get("about:blank")
    browser.get(address)
    wait(browser, "return document.body.dataset.ready === 'yes'")
    assert (value(browser, "first"), value(browser, "second")) == ("cell 4", "cell 180")
    assert browser.execute_script("return document.body.dataset.power") == "16"
    assert pixels(browser) == shown
    browser.get("about:blank")
    browser.get(page.as_uri() + "#time=3&color=99&a=x&b=1e9&view=0_no&size=-1")
    wait(browser, "return document.body.dataset.ready === 'yes'")
    assert pixels(browser) == seen[0]


@needs_browser
def test_two_fingers_zoom(browser, blobs):
    _, page, _ = blobs
    opened(browser, page)
    at = browser.execute_script("return document.getElementById('cloud').getBoundingClientRect()")

    def touch(kind, *places):
        points = [{"x": at["x"] + x, "y": at["y"] + y, "id": i} for i, (x, y) in enumerate(places)]
        browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", (200, 200), (300, 200))
    touch("touchMove", (160, 200), (340, 200))
    touch("touchMove", (150, 200), (350, 200))
    touch("touchEnd")
    wait(browser, "return cloud.view.zoom > 1.5")
    assert browser.execute_script("return cloud.view.zoom") == pytest.approx(2, rel=0.15)
    assert value(browser, "first") == ""  # it was no click


@needs_browser
def test_everything_is_done_by_keys_alone(browser, blobs):
    from selenium.webdriver import ActionChains, Keys

    _, page, _ = blobs
    opened(browser, page)
    focus(browser, "cloud")
    start = element(browser, "where").get_property("textContent")
    assert start.startswith("cell ")
    place = browser.execute_script("return cloud.place(cursor)")
    keys(browser, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert browser.execute_script("return cloud.place(cursor)")["x"] > place["x"]
    keys(browser, Keys.ENTER, Keys.ARROW_LEFT, Keys.ENTER, Keys.SPACE)
    wait(browser, "return !document.getElementById('answer').hidden")
    assert value(browser, "first") != value(browser, "second") != ""
    assert element(browser, "selected").text == "1 selected"
    keys(browser, "+")
    assert browser.execute_script("return cloud.view.zoom") == 1.5
    chain = ActionChains(browser).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT)
    chain.key_up(Keys.SHIFT).perform()
    assert browser.execute_script("return cloud.view.x") < 0
    keys(browser, Keys.ESCAPE, "0")
    assert element(browser, "selected").text == ""
    assert browser.execute_script("return cloud.view.zoom") == 1
    for name in ("time", "play", "color", "first", "second", "closer", "lasso", "table", "png"):
        focus(browser, name)


@needs_browser
def test_the_legend_keeps_the_focus(browser, blobs):
    from selenium.webdriver import Keys

    _, page, _ = blobs
    opened(browser, page)
    focus(browser, "color")
    keys(browser, Keys.TAB)
    before = pixels(browser)
    for pressed in ("true", "false"):
        keys(browser, Keys.SPACE)
        assert browser.switch_to.active_element.get_attribute("aria-pressed") == pressed
    assert pixels(browser) == before


def test_images_are_checked_and_scaled(tmp_path):
    model = HeatSketch(4).fit(circle(30))
    for wrong in (np.ones((30, 2)), np.ones((29, 2, 2)), np.ones((30, 2, 2, 4)), [["a"]]):
        with pytest.raises(
            HeatSketchError, match=r"must be numbers of shape \(30, height, width\)"
        ):
            write_report(model, tmp_path / "page.html", images=wrong)
    bytes_ = np.arange(120, dtype=np.uint8).reshape(30, 2, 2)
    assert check_images(bytes_, 30) is bytes_
    assert check_images(np.full((30, 1, 1), 7.0), 30).max() == 0


@needs_browser
def test_a_phone_has_nothing_beside_the_screen(tmp_path):
    driver = open_browser()
    size = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    try:
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        X = two_blobs(N, 1.0)
        colors = {"a long name of a column " * 5: ["a long label " * 9, "b"] * (N // 2)}
        write_report(HeatSketch(8).fit(X), tmp_path / "page.html", colors=colors)
        opened(driver, tmp_path / "page.html")
        driver.execute_script("pick(0); pick(150);")
        wide = driver.execute_script("return document.documentElement.scrollWidth")
        assert wide <= 390
    finally:
        driver.quit()


# --- what goes into it ----------------------------------------------------------------------


def test_only_a_sketch_with_its_training_data_has_a_report(tmp_path):
    X, page = circle(30), tmp_path / "page.html"
    with pytest.raises(HeatSketchError, match="model=DiffusionMap has no sketch"):
        write_report(DiffusionMap(2).fit(X), page)
    model = HeatSketch(4).fit(X)
    with pytest.raises(HeatSketchError, match="must be an integer of at least 1"):
        write_report(model, page, powers=[0, 1])
    with pytest.raises(HeatSketchError, match=r"names of shape \(2,\) must be 30"):
        write_report(model, page, names=["a", "b"])
    with pytest.raises(HeatSketchError, match=r"colors\['kind'\] of shape \(2,\) must be 30"):
        write_report(model, page, colors={"kind": ["a", "b"]})
    with pytest.raises(HeatSketchError, match="has no names; give a mapping"):
        write_report(model, page, colors=np.ones(30))
    with pytest.raises(HeatSketchError, match="confidence=95 must lie between"):
        write_report(model, page, confidence=95)
    assert not page.exists()
    write_report(model, page)
    with pytest.raises(OutputExistsError):
        write_report(model, page)
    model.heat_operator_ = None
    with pytest.raises(TrainingDataError, match="a report needs the training data"):
        write_report(model, page, overwrite=True)


@pytest.mark.parametrize(
    "options",
    [
        {"n_components": 1},
        {"n_components": 2, "power": 3},
        {"epsilon": 0.3},
        {"epsilon": "auto", "n_neighbors": None},
        {"epsilon": 0.1, "power": 9.5, "n_neighbors": None},
        {"power": 4, "stationary": "keep", "weighting": "random_walk"},
        {"normalization": "bistochastic", "n_neighbors": 9},
        {"metric": "cosine"},
        {"power": 300},
    ],
    ids=str,
)
def test_every_kind_of_sketch_has_a_report(tmp_path, options):
    model = HeatSketch(**{"n_components": 8, **options}).fit(circle(60))
    write_report(model, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 20_000


def test_precomputed_and_connected_components(tmp_path):
    X = two_blobs(60, 100.0)
    with pytest.warns(UserWarning, match="2 connected components"):
        model = HeatSketch(8, n_neighbors=5).fit(X)
    write_report(model, tmp_path / "components.html")
    assert "connected component" in (tmp_path / "components.html").read_text(encoding="utf-8")
    K = np.exp(-np.square(np.subtract.outer(*2 * [np.arange(30.0)])))
    write_report(HeatSketch(8, affinity="precomputed").fit(K), tmp_path / "given.html")
    assert '"kind": "none"' in (tmp_path / "given.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_rounding_moves_an_entry_by_half_a_unit_of_its_row(seed, dtype):
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((40, 16)) * 10.0 ** rng.integers(-6, 6, (40, 1)) + 5
    numbers, units = rounded_rows(Y, dtype)
    back = numbers * units[:, np.newaxis] + Y.mean(axis=0)
    slack = 4 * np.finfo(float).eps * np.abs(Y).max()
    assert (np.abs(back - Y) <= units[:, np.newaxis] / 2 + slack).all()
    assert np.abs(numbers).max() == np.iinfo(dtype).max


@pytest.mark.parametrize("n_points", [200, 20_000, 200_000, 3_000_000])
@pytest.mark.parametrize("k", [16, 64, 256])
def test_a_page_stays_below_40_megabytes(n_points, k):
    n_times, n_columns = 9, 4
    rows = _rows(n_points, k, n_times, n_columns)
    entry = np.dtype(rows.dtype).itemsize
    raw = len(rows.drawn) * (4 + 4 * n_columns + 12)
    raw += len(rows.sketched) * n_times * (entry * k + 8)
    assert raw * 4 / 3 <= PAGE_BYTES < 40e6
    assert len(rows.sketched) >= min(n_points, 1000)


def test_columns_are_labels_or_values():
    colors = {
        "text": ["b", "a", None],
        "whole": [2, 10, 2],
        "real": [2.0, 10.0, np.nan],
        "numbers as text": ["2", "10", ""],
        "reals as text": ["2.5", "10", ""],
        "truth": [True, False, True],
    }
    found = {column.name: column for column in color_columns(colors, 3)}
    assert found["text"].kinds == ("a", "b")
    assert found["text"].data.tolist() == [1, 0, 255]
    assert found["whole"].kinds == found["numbers as text"].kinds == ("2", "10")
    assert found["truth"].kinds == ("False", "True")
    for name in ("real", "reals as text"):
        assert found[name].kinds is None
        assert np.isnan(found[name].data[2])
    words = [f"w{i:02}" for i in range(40)] + ["w39", "w38"]
    (many,) = color_columns({"many": words}, 42)
    assert len(many.kinds) == MOST_KINDS
    assert many.kinds[-1] == "17 others"
    assert {"w38", "w39"} < set(many.kinds)


def test_data_frames_are_mappings():
    import pandas as pd
    import polars as pl

    table = {"a": [1.5, 2.5], "b": ["x", "y"]}
    for frame in (pd.DataFrame(table), pl.DataFrame(table)):
        assert [column.name for column in color_columns(frame, 2)] == ["a", "b"]
