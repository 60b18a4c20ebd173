"""A browser without a window, which keeps a log of what it asked the network for."""

import json
import shutil

import pytest

DRIVER, BROWSER = shutil.which("chromedriver"), shutil.which("chromium")
needs_browser = pytest.mark.skipif(
    not (DRIVER and BROWSER), reason="apt-get install chromium chromium-driver"
)
SWITCHES = ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage")


def open_browser(width=1200, height=900):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for switch in (*SWITCHES, f"window-size={width},{height}"):
        options.add_argument(f"--{switch}")
    options.binary_location = BROWSER
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_script_timeout(120)
    return driver


def requested(driver):
    """Return the addresses that were asked for since the last call."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
