"""Build the site: `python -m tools.docs` stages the pages and builds them, strictly."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.docs import (
    api_page,
    cli_page,
    notebook,
    results_pages,
    settings_page,
    walk_pages,
)

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
STAGED = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"

_FETCHED = re.compile(
    r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>"
)


def main() -> int:
    """Stage and build the pages, fill in outputs, and look for what would be fetched."""
    outputs = stage()
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        print(built.stdout, built.stderr, file=sys.stderr)
        return 1
    for name, parts in outputs.items():
        page = (SITE / name).with_suffix(".html")
        page.write_text(notebook.with_outputs(page.read_text("utf-8"), parts), "utf-8")
    fetched = fetches(SITE)
    for line in fetched:
        print(line, file=sys.stderr)
    print(f"site: {sum(1 for _ in SITE.rglob('*.html'))} pages in {SITE.relative_to(ROOT)}")
    return 1 if fetched else 0


def stage() -> dict[str, list[str]]:
    """Copy the written pages, add the generated ones; return outputs of notebooks."""
    shutil.rmtree(STAGED, ignore_errors=True)
    shutil.copytree(DOCS, STAGED)
    pages = {
        "reference/api.md": api_page.page(),
        "reference/cli.md": cli_page.page(),
        "reference/settings.md": settings_page.page(),
        **walk_pages.pages(),
        **results_pages.pages(ROOT / "benchmarks" / "results", STAGED / "results"),
    }
    outputs = {}
    for path in sorted(DOCS.rglob("*.ipynb")):
        name = path.relative_to(DOCS).with_suffix(".md").as_posix()
        pages[name], outputs[name] = notebook.markdown(notebook.run(path), path.name)
    for name, text in pages.items():
        (STAGED / name).parent.mkdir(parents=True, exist_ok=True)
        (STAGED / name).write_text(text, "utf-8")
    return outputs


def fetches(site: Path) -> list[str]:
    """Return what the pages would fetch from the network: there must be nothing."""
    return [
        f"{page.relative_to(site)}: expected nothing from the network, found {match[0]}"
        for page in sorted(site.rglob("*.html"))
        for match in _FETCHED.finditer(page.read_text("utf-8"))
    ]


if __name__ == "__main__":
    sys.exit(main())
