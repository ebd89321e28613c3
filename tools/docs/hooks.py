"""Hooks of mkdocs: add the generated pages, and put the outputs of notebooks in place."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.docs import api_page, cli_page, notebook, results_pages, settings_page  # noqa: E402

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_outputs: dict[str, list[str]] = {}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every generated page."""
    pages = {
        "reference/api.md": api_page.page(),
        "reference/cli.md": cli_page.page(),
        "reference/settings.md": settings_page.page(),
        **results_pages.pages(ROOT / "benchmarks" / "results"),
    }
    for path in sorted((ROOT / "docs").rglob("*.ipynb")):
        name = path.relative_to(ROOT / "docs").with_suffix(".md").as_posix()
        run = notebook.run(path)
        pages[name], _outputs[name] = notebook.markdown(run, path.name)
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the placeholders of HTML outputs, which Markdown would garble."""
    return notebook.with_outputs(html, _outputs.get(page.file.src_uri, []))
