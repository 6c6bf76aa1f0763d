"""The code of the pages in docs runs as it stands there, prints what stands behind it, and draws the picture beside it."""

from __future__ import annotations

import contextlib
import io
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run(page: str, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(folder)
    blocks = BLOCK.findall((ROOT / "docs" / page).read_text())
    assert len(blocks) > 8
    names: dict[str, object] = {}
    printed = ""
    for language, block in blocks:
        if language == "text":
            assert printed == block
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block, page, "exec"), names)
        printed = out.getvalue()


def test_the_code_of_the_page_runs(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("python.md", tmp_path, monkeypatch)


def test_the_tutorial_runs(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("tutorial-python.md", tmp_path, monkeypatch)
    drawn, kept = tmp_path / "flights.svg", ROOT / "docs/plots/tutorial-python.svg"
    assert drawn.read_bytes() == kept.read_bytes(), f"the picture is another now: cp {drawn} {kept}"
