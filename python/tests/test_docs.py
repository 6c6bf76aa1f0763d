"""The code of docs/python.md runs as it stands there, and prints what stands behind it."""

from __future__ import annotations

import contextlib
import io
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_code_of_the_page_runs(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / "docs/python.md").read_text())
    assert len(blocks) > 8
    names: dict[str, object] = {}
    printed = ""
    for language, block in blocks:
        if language == "text":
            assert printed == block
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block, "docs/python.md", "exec"), names)
        printed = out.getvalue()
