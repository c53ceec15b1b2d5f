"""Debian's Chromium for tests of pages: a file is opened, cut off from everything else, and watched.

why_not()                            why there is none here, or None
with running() as browser:           one process for all tests
    with looked_at(browser, file, Look(width=375, dark=True)) as seen:
        seen.page                    to ask about; `seen.said` and `seen.asked_for` must stay empty
"""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@dataclass(frozen=True)
class Look:
    """How somebody looks at a page: on which screen, by which light, on paper, without scripts."""

    width: int = 1280
    dark: bool = False
    printed: bool = False
    scripts: bool = True

    def __str__(self) -> str:
        parts = [str(self.width), "dark" if self.dark else "light", "print" if self.printed else ""]
        return " ".join(filter(None, parts))


LOOKS = tuple(Look(width, dark) for width in (375, 1280) for dark in (False, True))


@dataclass
class Seen:
    """An open page; what it wrote to the console or asked somebody, and what it wanted besides its file."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked_for: list[str] = field(default_factory=list)


def why_not() -> str | None:
    """Why pages cannot be looked at here."""
    if program() is None:
        return "Chromium is not installed"
    if not all(map(importlib.util.find_spec, ("playwright", "axe_playwright_python"))):
        return "playwright and axe-playwright-python are not installed: make test-browser installs them"
    return None


def program() -> str | None:
    """The installed browser; none is ever downloaded."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextlib.contextmanager
def running() -> Iterator[Any]:
    """The browser, without a window."""
    from playwright.sync_api import sync_playwright

    # The sandbox of Chromium does not work for root, as whom tests run in containers.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program(), args=arguments)
        yield browser
        browser.close()


@contextlib.contextmanager
def looked_at(browser: Any, file: Path, look: Look | None = None) -> Iterator[Seen]:
    """Open a file: nothing else is let through, and whatever is tried is noted."""
    look = look or Look()
    context = browser.new_context(
        viewport={"width": look.width, "height": 900},
        color_scheme="dark" if look.dark else "light",
        java_script_enabled=look.scripts,
    )
    seen = Seen(context.new_page())
    address = file.resolve().as_uri()

    def let_through(route: Any) -> None:
        if route.request.url == address:
            route.continue_()
        else:
            seen.asked_for.append(route.request.url)
            route.abort()

    def dismiss(dialog: Any) -> None:
        seen.said.append(f"{dialog.type}: {dialog.message}")
        dialog.dismiss()

    context.route("**/*", let_through)
    seen.page.on("console", lambda told: seen.said.append(f"{told.type}: {told.text}"))
    seen.page.on("pageerror", lambda error: seen.said.append(f"error: {error}"))
    seen.page.on("dialog", dismiss)
    try:
        if look.printed:
            seen.page.emulate_media(media="print", color_scheme="dark" if look.dark else "light")
        seen.page.goto(address)
        yield seen
    finally:
        context.close()


def violations(page: Any) -> list[str]:
    """What axe finds wrong with a page, each with the places."""
    spec = importlib.util.find_spec("axe_playwright_python")
    assert spec is not None
    assert spec.origin is not None
    page.evaluate((Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
    assert len(found["passes"]) > 5, "axe looked at nothing"
    return [f"{one['id']}: {node['html'][:200]}" for one in found["violations"] for node in one["nodes"]]


def colours(page: Any, png: bytes) -> dict[str, int]:
    """How many pixels of a picture have which colour, counted by a canvas of a page of the same browser."""
    counted: dict[str, int] = page.evaluate(
        """async coded => {
            const picture = await createImageBitmap(await (await fetch(coded)).blob());
            const canvas = new OffscreenCanvas(picture.width, picture.height);
            const pen = canvas.getContext("2d");
            pen.drawImage(picture, 0, 0);
            const data = new Uint32Array(pen.getImageData(0, 0, picture.width, picture.height).data.buffer);
            const counts = {};
            for (const pixel of data) counts[pixel] = (counts[pixel] || 0) + 1;
            return counts;
        }""",
        "data:image/png;base64," + base64.b64encode(png).decode(),
    )
    return counted


def brightness(colour: str) -> float:
    """Of what CSS computes, `rgb(20, 24, 30)`: 0 is black, 1 is white."""
    numbers = [float(number) for number in re.findall(r"[\d.]+", colour)]
    assert len(numbers) == 3, f"a colour that cannot be seen through, not {colour}"
    return sum(numbers) / (3 * 255)


def sheets(pdf: bytes) -> int:
    """The pages of a document as Chromium prints it."""
    return len(re.findall(rb"/Type\s*/Page\b", pdf))
