"""How pages, pictures and notebook views look: one sheet for all, with nothing that is loaded from elsewhere.

Everything is inside `.sq`: the body of a page, the root of a picture that is a file of its own, or a view in somebody
else's page. Text has a contrast of at least 4.5 to what is behind it, in the light and in the dark; lines are told from
each other by dashes and marks, bars by hatching, and colours (after Okabe and Ito) only help.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files


def picture_style() -> str:
    """What a drawing needs."""
    return _sheet("picture.css")


def page_style() -> str:
    """What a page needs, drawings and all."""
    return _sheet("picture.css") + _sheet("page.css")


@cache
def _sheet(name: str) -> str:
    text = (files("sequester.report") / name).read_text(encoding="utf-8")
    return re.sub(r"\s*\n\s*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
