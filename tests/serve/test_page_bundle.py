"""The built page in the package: up to date, small, and without anything from elsewhere."""

import hashlib
import json
import re

from tests.helpers import ROOT

WEB = ROOT / "web"
PAGE = ROOT / "src" / "arcfleet" / "serve" / "page"


def test_the_bundle_is_built_from_the_sources() -> None:
    names = ["index.html", "package.json", "package-lock.json", "tsconfig.json"]
    names += ["vite.config.ts"]
    names += [
        path.relative_to(WEB).as_posix()
        for path in (WEB / "src").rglob("*")
        if path.is_file()
    ]
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(name.encode() + b"\0" + (WEB / name).read_bytes())
    recorded = (PAGE / "sources.sha256").read_text().strip()
    assert digest.hexdigest() == recorded, "web/ has changed: run `make page`"


def test_the_page_has_nothing_inline_and_nothing_from_elsewhere() -> None:
    page = (PAGE / "index.html").read_text()
    assert not re.search(r"\s(style|on\w+)=", page)
    assert "<style" not in page
    scripts = re.findall(r"<script[^>]*>([^<]*)</script>", page)
    assert scripts == [""]
    for address in re.findall(r'(?:src|href)="([^"]*)"', page):
        assert address.startswith("/")
        assert (PAGE / address[1:]).is_file()


def test_the_bundle_is_small_and_has_its_licences() -> None:
    assert sum(path.stat().st_size for path in PAGE.rglob("*") if path.is_file()) < 400_000
    licences = (PAGE / "licences.txt").read_text()
    shipped = json.loads((WEB / "package.json").read_text())["devDependencies"]["leaflet"]
    assert f"leaflet {shipped}" in licences
    assert "Redistribution and use in source and binary forms" in licences


def test_the_lock_file_pins_versions_and_names_no_host() -> None:
    lock = (WEB / "package-lock.json").read_text()
    assert "resolved" not in lock
    wanted = json.loads((WEB / "package.json").read_text())["devDependencies"]
    assert all(re.fullmatch(r"[\d.]+", version) for version in wanted.values())
    packages = json.loads(lock)["packages"]
    for name, version in wanted.items():
        assert packages[f"node_modules/{name}"]["version"] == version
