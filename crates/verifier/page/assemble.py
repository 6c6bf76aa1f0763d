"""Puts the page together: one file with its styles, scripts and module inside.

Usage: python3 assemble.py MODULE PAGE

The Content-Security-Policy names script and styles by their hashes, so that nothing else runs, whatever a mirror sends.
"""

import base64
import hashlib
import pathlib
import sys

HERE = pathlib.Path(__file__).parent


def read(name):
    return (HERE / name).read_text(encoding="utf-8").strip() + "\n"


def source_hash(text):
    """As a policy names what stands between two tags."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def main(module, page):
    parts = {
        "STYLES": read("page.css"),
        "SCRIPT": read("page.js"),
        "WORKER": read("worker.js"),
        "MODULE": base64.b64encode(pathlib.Path(module).read_bytes()).decode(),
    }
    for name, text in parts.items():
        # Inside of a script's or a style's tags nothing but its end ends it.
        if "</" in text or "<!--" in text:
            sys.exit(f"{name}: a tag, or what looks like one")
    parts["POLICY"] = "; ".join(
        [
            "default-src 'none'",
            f"script-src {source_hash(parts['SCRIPT'])} 'wasm-unsafe-eval'",
            f"style-src {source_hash(parts['STYLES'])}",
            "worker-src blob:",
            "connect-src http: https:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types counterfoil",
        ]
    )
    text = read("page.html")
    for name, part in parts.items():
        mark = "{{" + name + "}}"
        if text.count(mark) != 1:
            sys.exit(f"page.html: {mark} is not there once")
        text = text.replace(mark, part)
    pathlib.Path(page).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
