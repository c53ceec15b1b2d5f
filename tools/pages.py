"""What the documentation site has beside the pages in docs/: pages from the root of the sources, and the notebooks.

MkDocs calls the functions that begin with `on_` (`hooks` in mkdocs.yml). Links are rewritten from where a page is in
the sources to where it is in the site. A page that would load anything from elsewhere fails the build.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
_LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"' >]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is not in docs/."""
    for source, page in PAGES.items():
        text = relinked((ROOT / source).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=text))
    for notebook in sorted((ROOT / "examples").glob("*.ipynb")):
        files.append(File.generated(config, f"examples/{notebook.stem}.md", content=as_page(notebook)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Pages in docs/ link to pages at the root."""
    return relinked(markdown)


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    """Whoever reads the documentation of a privacy tool tells nobody by it."""
    if foreign := _LOADED.findall(output):
        raise PluginError(f"{page.file.src_uri} loads from elsewhere: {', '.join(sorted(set(foreign)))}")
    return output


def relinked(text: str) -> str:
    """The same text with links to pages of the site."""
    for source, page in PAGES.items():
        text = re.sub(rf"\]\((?:\.\./)?{re.escape(source)}(#[^)]*)?\)", rf"]({page}\1)", text)
    # The site has notebooks as pages; what else is in examples/ stays with the sources.
    text = re.sub(r"\]\(examples/([\w-]+)\.ipynb\)", r"](examples/\1.md)", text)
    text = re.sub(r"\[([^\]]+)\]\(examples/README\.md\)", r"`\1/`", text)
    return text.replace("](docs/", "](")


def as_page(notebook: Path) -> str:
    """The cells of a notebook, with the outputs that are kept in it."""
    return "\n\n".join(_shown(cell) for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"])


def _shown(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    shown = [f"```python\n{source}\n```"]
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "image/svg+xml" in data:
            # One line, or Markdown would take what follows a blank line for text.
            shown.append(re.sub(r"\s*\n\s*", " ", "".join(data["image/svg+xml"])))
        elif "text/html" in data:
            shown.append(re.sub(r"\s*\n\s*", " ", "".join(data["text/html"])))
        else:
            text = "".join(data.get("text/plain", output.get("text", [])))
            shown.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(shown)
