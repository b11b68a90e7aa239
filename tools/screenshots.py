"""Take the pictures of the report that the README and the docs show.

.venv/bin/tropescope demo
.venv/bin/python tools/screenshots.py runs/demo/report.html
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


def main(report: Path) -> None:
    from conftest import CHROMIUM_FLAGS, chromium_path

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
        page = browser.new_page(viewport={"width": 1100, "height": 1000}, device_scale_factor=1)
        page.goto(report.resolve().as_uri())
        shot = {"type": "png"}
        page.screenshot(path=PICTURES / "report_summary.png", **shot)
        page.locator("#overview").screenshot(path=PICTURES / "report_overview.png", **shot)
        first = page.locator("#concepts details").first
        page.evaluate(
            "document.querySelectorAll('.numbers').forEach(d => d.removeAttribute('open'))"
        )
        first.screenshot(path=PICTURES / "report_phrase.png", **shot)
        browser.close()
    # The chart and the first pictures are enough for a reader of the README.
    phrase = PICTURES / "report_phrase.png"
    with Image.open(phrase) as whole:
        whole.crop((0, 0, whole.width, min(1600, whole.height))).save(phrase)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
