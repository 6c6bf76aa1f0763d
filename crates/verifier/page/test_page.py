"""The verifier's page in a headless Chromium: honest servers, dishonest ones, yesterday's, hostile texts.

Usage: python3 test_page.py PROGRAM PAGE        (scripts/test-verifier)
"""

import contextlib
import csv
import http.server
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse

from browser import Browser

PROGRAM, PAGE = map(os.path.abspath, sys.argv[1:3])
MARKUP = '<img src=x onerror="document.title=1">'
SCRIPT = "</td></table></script><script>document.title=2</script>"
RIGHT_TO_LEFT = "\u202e<b>gnorw</b>"
HEADER = ["symbol", "day", "price", "note", MARKUP]
STALLED = "/stalled/"


def rows(count):
    notes = [MARKUP, SCRIPT, RIGHT_TO_LEFT, "&amp; 'plain' \"text\"", ""]
    return [
        [["ABB", "NES", "ROG"][at % 3], f"2026-{1 + at // 28:02}-{1 + at % 28:02}", f"{at}.25", notes[at % 5], f"{SCRIPT}{at}"]
        for at in range(count)
    ]


class Files(http.server.SimpleHTTPRequestHandler):
    """A web server as anybody runs one, which lets pages from elsewhere read."""

    root = open_origin = None
    asked = []
    stalled = threading.Event()

    def __init__(self, *arguments):
        super().__init__(*arguments, directory=self.root)

    def do_GET(self):
        self.asked.append(self.path)
        if self.path.startswith(STALLED):
            self.stalled.set()
            self.server.going.wait()
            return
        super().do_GET()

    def end_headers(self):
        if self.open_origin:
            self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(root, open_origin=True):
    """The address of a folder, and the handler that notes what was asked."""
    handler = type("Served", (Files,), {"root": str(root), "open_origin": open_origin, "asked": [], "stalled": threading.Event()})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.going = threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", handler
    finally:
        server.going.set()
        server.shutdown()
        server.server_close()


class Owner:
    """Publishes a table with the program."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = os.environ | {"COUNTERFOIL_STATE_DIR": str(folder / "state")}
        (folder / "key").write_bytes(os.urandom(32))
        self.name = None

    def run(self, *arguments):
        done = subprocess.run([PROGRAM, *map(str, arguments)], env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{arguments}: {done.stderr}")
        return done.stdout + done.stderr

    def publish(self, rows, *where):
        self.publish_table("prices", [HEADER, *rows], "--order-by", "symbol,day", "--order-by", "price",
                           "--state", self.folder / "site.foil", *where)

    def publish_table(self, table, lines, *how):
        path = self.folder / f"{table}.csv"
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(lines)
        told = self.run("publish", path, "--key-file", self.folder / "key", *how)
        named = [word for word in told.split() if word.startswith("foilpub1")]
        self.name = named[0] if named else self.name


class VerifierPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.owner = Owner(cls.folder)
        cls.site, cls.yesterday = cls.folder / "site", cls.folder / "yesterday"
        cls.owner.publish(rows(200), "--out", cls.site)
        shutil.copytree(cls.site, cls.yesterday)
        cls.rows = rows(260)
        cls.owner.publish(cls.rows, "--out", cls.site)
        shutil.copy(PAGE, cls.folder / "verifier.html")
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.temporary.cleanup()

    # ---- what a person does ----

    def page(self, server, sql="SELECT * FROM prices", owner=None, at=None):
        given = urllib.parse.urlencode({"server": server, "owner": owner or self.owner.name, "sql": sql})
        page = self.browser.open(f"{at or (self.folder / 'verifier.html').as_uri()}#{given}")
        self.addCleanup(page.send, "Page.close")
        page.run("localStorage.clear()")
        return page

    def ask(self, page, sql=None):
        if sql is not None:
            page.run(f"document.getElementById('sql').value = {json.dumps(sql)}")
        page.run("document.getElementById('ask').click()")
        page.wait("!document.getElementById('ask').disabled")
        return self.text(page, "verdict-word")

    def text(self, page, part):
        return page.run(f"document.getElementById({json.dumps(part)}).textContent")

    def table(self, page):
        """All rows as they are shown: a text, or None for NULL."""
        while page.run("!document.getElementById('more').hidden"):
            shown = page.run("document.querySelectorAll('tbody tr').length")
            page.run("document.getElementById('more').click()")
            page.wait(f"document.querySelectorAll('tbody tr').length > {shown}")
        return page.run("""[...document.querySelectorAll('tbody tr')].map((row) =>
            [...row.cells].map((cell) => cell.className === 'null' ? null : cell.textContent))""")

    def corrupt(self, page, kind, place=""):
        page.run(f"document.querySelector('[name=kind][value={kind}]').click()")
        page.run(f"document.getElementById('place').value = {json.dumps(place)}")
        before = page.run("document.getElementById('caught').childElementCount")
        page.run("document.getElementById('corrupt').click()")
        page.wait(f"document.getElementById('caught').childElementCount > {before} && !document.getElementById('corrupt').disabled")
        return page.run("[...document.querySelector('#caught li').children].map((part) => part.textContent)")

    def holds(self, page, expected):
        self.assertEqual(self.text(page, "verdict-word"), "Verified", self.text(page, "verdict-text"))
        shown = [[value or None for value in row] for row in expected]
        self.assertEqual(sorted(map(str, self.table(page))), sorted(map(str, shown)))
        self.nothing_ran(page)

    def nothing_ran(self, page):
        self.assertEqual(page.run("document.title"), "Counterfoil verifier")
        self.assertEqual(page.run("document.querySelectorAll('img, iframe, b:empty, main script').length"), 0)
        complaints = [text for text in page.complaints() if "Failed to load resource" not in text]
        self.assertEqual(complaints, [])

    # ---- honest servers ----

    def test_rows_are_those_that_were_published(self):
        with served(self.site) as (address, handler):
            page = self.page(address)
            self.assertEqual(self.ask(page), "Verified")
            self.holds(page, self.rows)
            self.assertIn("Authentic and complete as of", self.text(page, "verdict-text"))
            names = page.run("[...document.querySelectorAll('thead th')].map((name) => name.firstChild.textContent)")
            self.assertEqual(names, HEADER)
            self.assertIn("260", self.text(page, "facts"))
            own = [url for url in page.requests() if not url.startswith(("file:", "blob:"))]
            self.assertEqual(own, [], "the page itself fetches nothing")
            self.assertEqual(len(handler.asked), len(set(handler.asked)), "each file once")

    def test_questions_are_answered_as_by_the_program(self):
        with served(self.site) as (address, _):
            page = self.page(address)
            for sql in ["SELECT day, price FROM prices WHERE symbol = 'NES' AND day >= '2026-05-01'",
                        "SELECT price FROM prices ORDER BY price DESC LIMIT 7",
                        "SELECT count(*), avg(price) FROM prices WHERE symbol <> 'ROG'",
                        "SELECT symbol FROM prices WHERE symbol = 'nobody'"]:
                self.assertEqual(self.ask(page, sql), "Verified", self.text(page, "verdict-text"))
                told = self.owner.run("ask", "--server", self.site, "--owner", self.owner.name, "--format", "json", "-q", sql)
                answer, _ = json.JSONDecoder().raw_decode(told.strip() or "[]")
                shown = self.table(page)
                self.assertEqual(len(shown), len(answer), sql)
                for row, expected in zip(shown, answer):
                    for value, other in zip(row, expected.values()):
                        self.assertIn(value, [str(other), other], sql)
            nobody = self.ask(page, "SELECT * FROM prices WHERE symbol < 'A' AND symbol > 'B'")
            self.assertEqual(nobody, "Verified")
            self.assertIn("nobody was asked", self.text(page, "verdict-advice"))

    def test_a_server_s_own_page_needs_no_leave(self):
        shutil.copy(PAGE, self.site / "verifier.html")
        with served(self.site, open_origin=False) as (address, _):
            page = self.page("", at=f"{address}/verifier.html")
            self.assertEqual(page.run("document.getElementById('server').value"), f"{address}/")
            self.assertEqual(self.ask(page), "Verified")
            self.holds(page, self.rows)
            # From elsewhere it may not be read, and the page says what to look for.
            page = self.page(address)
            self.assertEqual(self.ask(page), "No answer")
            self.assertIn("CORS", self.text(page, "verdict-text"))

    def test_a_mirror_that_answers_itself(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        address = f"http://127.0.0.1:{port}"
        mirror = subprocess.Popen(
            [PROGRAM, "mirror", "serve", "--store", self.folder / "mirror", "--listen", f"127.0.0.1:{port}", "--allow-any"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.owner.environment)
        self.addCleanup(mirror.wait)
        self.addCleanup(mirror.terminate)
        wait_for_port(port, mirror)
        self.owner.publish(self.rows, "--to", address)
        page = self.page(address)
        self.assertEqual(self.ask(page), "Verified", self.text(page, "verdict-text"))
        self.holds(page, self.rows)
        for kind in ["value", "row", "summary", "yesterday"]:
            self.assertTrue(self.corrupt(page, kind)[0].startswith("Caught: "))

    def test_a_kept_answer_is_checked_by_the_program(self):
        with served(self.site) as (address, _):
            page = self.page(address, "SELECT count(*) FROM prices")
            self.assertEqual(self.ask(page), "Verified")
            kept = page.run("work('keep').then(({ bytes }) => [...bytes])")
        (self.folder / "kept").write_bytes(bytes(kept))
        told = self.owner.run("ask", "--check", self.folder / "kept", "--owner", self.owner.name, "--format", "csv")
        self.assertIn("260", told)
        self.assertIn("verified: authentic and complete", told)

    # ---- dishonest ones ----

    def test_each_corruption_is_caught_with_its_reason(self):
        with served(self.site) as (address, _):
            page = self.page(address)
            self.assertEqual(self.ask(page), "Verified")
            for place in ["1", "57", "260", ""]:
                word, reason = self.corrupt(page, "value", place)
                self.assertIn(word, ["Caught: forged", "Caught: malformed"])
                self.assertIn("of the answer was", reason)
                word, reason = self.corrupt(page, "row", place)
                self.assertEqual(word, "Caught: forged")
                self.assertIn("was left out, and its signature with it. forged: the owner did not sign these rows beside each other", reason)
                word, reason = self.corrupt(page, "summary", place)
                self.assertIn(word, ["Caught: forged", "Caught: malformed"])
                # A bit may say nothing here, such as one of the root of another order.
                word, reason = self.corrupt(page, "bit", place)
                self.assertTrue(word.startswith(("Caught: ", "Accepted: the rows are the same")), reason)
            self.assertEqual(self.corrupt(page, "yesterday")[0], "Caught: stale")
            # The rows stay, and what was put in as a value ran nowhere.
            self.holds(page, self.rows)

    def test_totals_are_shown_and_each_corruption_of_them_is_caught(self):
        home = self.folder / "readings"
        home.mkdir()
        site, owner = home / "site", Owner(home)
        lines = [["sensor", "minute", "value"], *([["north", "south"][at % 2], at // 2, at] for at in range(400))]
        for count in (300, 401):
            owner.publish_table("readings", lines[:count], "--order-by", "sensor,minute", "--out", site)
        with served(site) as (address, _):
            for sql, expected in [
                ("SELECT count(*), sum(value) FROM readings", [["400", "79800"]]),
                ("SELECT count(*), sum(value) FROM readings WHERE sensor = 'south' AND minute BETWEEN 3 AND 177", [["175", "31675"]]),
                ("SELECT sensor, count(*), max(value) FROM readings GROUP BY sensor", [["north", "200", "398"], ["south", "200", "399"]]),
            ]:
                page = self.page(address, sql, owner=owner.name)
                self.assertEqual(self.ask(page), "Verified")
                self.holds(page, expected)
                self.assertIn("by signed totals", self.text(page, "facts"))
                for place in ["1", "2", "7", ""]:
                    word, reason = self.corrupt(page, "value", place)
                    self.assertIn(word, ["Caught: forged", "Caught: malformed"])
                    self.assertRegex(reason, "the sum of .* was made larger|was made one of|of a row at the edge was")
                    word, reason = self.corrupt(page, "row", place)
                    self.assertIn(word, ["Caught: forged", "Caught: incomplete", "Caught: malformed"])
                    self.assertRegex(reason, "was left out, and (its signature with it|nothing is left)")
                    self.assertIn(self.corrupt(page, "summary", place)[0], ["Caught: forged", "Caught: malformed"])
                    word, reason = self.corrupt(page, "bit", place)
                    self.assertTrue(word.startswith(("Caught: ", "Accepted: the rows are the same")), reason)
                self.assertEqual(self.corrupt(page, "yesterday")[0], "Caught: stale")
                self.holds(page, expected)

    def test_a_file_of_the_user_s_choice_is_corrupted(self):
        with served(self.site) as (address, _):
            page = self.page(address, "SELECT * FROM prices WHERE symbol = 'NES'")
            self.assertEqual(self.ask(page), "Verified")
            page.run("document.querySelector('[name=kind][value=bit]').click()")
            for file, word in [("manifest", "Caught: "), ("head", "Caught: "), ("summaries/0", "Caught: ")]:
                page.run(f"document.getElementById('file').value = {json.dumps(file)}")
                told = self.corrupt(page, "bit", "300" if file != "head" else "20")
                self.assertTrue(told[0].startswith(word), told)
                self.assertIn(f" of {file} was turned", told[1])

    def test_tampered_files_show_no_row(self):
        tampered = self.folder / "tampered"
        shutil.copytree(self.site, tampered)
        for path in (tampered / "pages").glob("*/*"):
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)
        with served(tampered) as (address, _):
            page = self.page(address)
            self.assertEqual(self.ask(page), "Refused: malformed")
            self.assertEqual(self.table(page), [])
            self.assertTrue(page.run("document.getElementById('rows').hidden && document.getElementById('dishonest').hidden"))

    def test_another_owner_is_refused(self):
        folder = self.folder / "other"
        folder.mkdir()
        other = Owner(folder)
        other.publish(rows(3), "--out", folder / "site")
        with served(folder / "site") as (address, _):
            page = self.page(address)
            self.assertEqual(self.ask(page), "Refused: forged")

    def test_yesterday_is_refused_by_who_has_seen_today(self):
        served_now = self.folder / "now"
        served_now.symlink_to(self.yesterday)
        with served(served_now) as (address, _):
            page = self.page(address)
            self.assertEqual(self.ask(page), "Verified")
            self.holds(page, rows(200))
            served_now.unlink()
            served_now.symlink_to(self.site)
            self.assertEqual(self.ask(page), "Verified")
            self.holds(page, self.rows)
            self.assertIn("nothing older is accepted", self.text(page, "remembered"))
            served_now.unlink()
            served_now.symlink_to(self.yesterday)
            # Another visit: it is the browser that remembers.
            page.send("Page.reload")
            page.wait("document.readyState === 'complete' && typeof ask === 'function'")
            self.assertEqual(self.ask(page), "Refused: stale")
            self.assertEqual(self.table(page), [])
            # An owner's name in capitals is the same owner.
            page.run("document.getElementById('owner').value = document.getElementById('owner').value.toUpperCase()")
            self.assertIn(self.ask(page), ["Refused: stale", "Not asked"])
            page.run("document.getElementById('owner').value = document.getElementById('owner').value.toLowerCase()")
            # What is damaged is not taken for nothing; who forgets begins anew.
            page.run("Object.keys(localStorage).forEach((key) => localStorage.setItem(key, '{\"memory\": \"0102\"}'))")
            self.assertEqual(self.ask(page), "Not asked")
            self.assertIn("damaged", self.text(page, "verdict-text"))
            page.run("document.getElementById('forget').click()")
            self.assertEqual(self.ask(page), "Verified")
            self.holds(page, rows(200))

    def test_silence_and_mistakes_are_no_refusals(self):
        with served(self.folder / "state") as (address, _):
            page = self.page(address)
            self.assertEqual(self.ask(page), "No answer")
            self.assertIn("no published table is here", self.text(page, "verdict-text"))
            page.run(f"document.getElementById('server').value = {json.dumps(address + STALLED)}")
            page.run("document.getElementById('ask').click()")
            page.wait("!document.getElementById('stop').hidden")
            page.run("document.getElementById('stop').click()")
            page.wait("!document.getElementById('ask').disabled")
            self.assertIn("You stopped it", self.text(page, "verdict-text"))
        page = self.page("http://127.0.0.1:9")
        self.assertEqual(self.ask(page), "No answer")
        self.assertEqual(self.ask(page, "DROP TABLE prices"), "Not asked")
        page.run("document.getElementById('owner').value = 'foilpub1nobody'")
        self.assertEqual(self.ask(page, "SELECT * FROM prices"), "Not asked")
        for server in ["javascript:alert(1)", "file:///etc", "http://user:word@127.0.0.1/", "nothing"]:
            page.run(f"document.getElementById('question').noValidate = true; document.getElementById('server').value = {json.dumps(server)}")
            self.assertEqual(self.ask(page), "Not asked")
        self.nothing_ran(page)

    def test_long_and_deep_questions_end_in_words(self):
        with served(self.site) as (address, _):
            page = self.page(address)
            chain = " OR ".join(["price = 1"] * 1000)
            for sql in [f"SELECT symbol FROM prices WHERE {chain}", f"SELECT symbol FROM prices WHERE {chain} OR {chain} OR {chain}",
                        f"SELECT symbol FROM prices WHERE {'(' * 12}price = 1{')' * 12}", "SELECT " + "(" * 5000]:
                self.ask(page, sql)
                self.assertNotIn("broke off", self.text(page, "verdict-text"), sql[:60])

    def test_a_link_presets_and_asks_nobody(self):
        with served(self.site) as (address, handler):
            given = urllib.parse.urlencode({"server": address, "owner": self.owner.name, "table": 'od"d'})
            page = self.browser.open(f"{(self.folder / 'verifier.html').as_uri()}#{given}")
            self.addCleanup(page.send, "Page.close")
            self.assertEqual(page.run("document.getElementById('sql').value"), 'SELECT * FROM "od""d" LIMIT 20')
            self.assertFalse(page.run("document.getElementById('from-link').hidden"))
            self.assertEqual(handler.asked, [])

    def test_the_policy_holds_what_the_code_forgets(self):
        with served(self.site) as (address, _):
            page = self.page(address)
            for attempt in [f"document.body.innerHTML = {json.dumps(MARKUP)}", "document.body.append(document.createRange().createContextualFragment('<p>'))",
                            "eval('1')", "new Worker('blob:x')"]:
                self.assertRaises(RuntimeError, page.run, attempt)
            self.assertEqual(page.run("document.title"), "Counterfoil verifier")

    def test_every_field_has_a_name(self):
        page = self.page("http://127.0.0.1:9")
        fields = "[...document.querySelectorAll('input:not([type=radio]), select, textarea')]"
        self.assertEqual(page.run(f"{fields}.filter((field) => field.labels.length !== 1).map((field) => field.id)"), [])


def wait_for_port(port, process):
    """Until somebody listens, or the process ends."""
    pause = threading.Event()
    while process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        pause.wait(0.05)
    raise RuntimeError("the mirror ended")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
