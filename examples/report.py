"""Draw ``docs/pictures/report.png``: a report of handwritten digits, in a browser.

Needs chromium and chromedriver, and selenium.
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from selenium import webdriver
from sklearn.datasets import load_digits

from heatsketch import HeatSketch
from heatsketch.report import write_report

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "report.png"
SWITCHES = ("headless=new", "no-sandbox", "disable-gpu", "window-size=1400,1000")


def main():
    """Write a report, open it with two points chosen, and keep what the window shows."""
    X, digit = load_digits(return_X_y=True)
    options = webdriver.ChromeOptions()
    for switch in SWITCHES:
        options.add_argument(f"--{switch}")
    options.binary_location = shutil.which("chromium")
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with TemporaryDirectory() as folder:
        page = Path(folder, "digits.html")
        colors = {"digit": digit, "ink": X.sum(axis=1)}
        images = X.reshape(-1, 8, 8)
        write_report(HeatSketch().fit(X), page, colors=colors, images=images, title="Digits")
        driver = webdriver.Chrome(options=options, service=service)
        try:
            driver.get(f"{page.as_uri()}#time=16&a=3&b=900")
            driver.execute_async_script("setTimeout(arguments[0], 2000)")
            driver.execute_script("showTip(state.second)")
            driver.save_screenshot(str(PICTURE))
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
