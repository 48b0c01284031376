#!/usr/bin/env python3
"""The web site of the pages (docs/site): its links, its menu, and in headless Chromium its console,
its requests and its search.

usage: check.py [PICTURES]      PICTURES: a folder for screenshots
exit: 0, 1 with the failed checks, 77 without Sphinx or Chromium
"""
import base64
import glob
import html.parser
import os
import subprocess
import sys
import tempfile
import urllib.parse

sys.dont_write_bytecode = True
TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TREE, "tests/page"))
import browser
from browser import check


class Html(html.parser.HTMLParser):
    """What a page links to and loads, and its anchors."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.ids = [], [], {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids.add(attrs.get("id", ""))
        for name in ("href", "src", "action"):
            if attrs.get(name) is not None:
                (self.links if tag == "a" else self.loads).append(attrs[name])


def broken(pages):
    """Links without a target, and what is not loaded from the site. `pages`: path -> Html."""
    for path, page in pages.items():
        for to in page.links + page.loads:
            url = urllib.parse.urlsplit(to)
            if url.scheme or url.netloc:
                if to in page.loads and url.scheme != "data":
                    yield f"{path}: loads {to}"
                continue
            file = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(url.path))) if url.path else path
            if not os.path.isfile(file):
                yield f"{path}: no file {to}"
            elif file in pages and to in page.links and urllib.parse.unquote(url.fragment) not in pages[file].ids:
                yield f"{path}: no anchor {to}"


def check_links(site):
    pages = {}
    for path in glob.glob(site + "/**/*.html", recursive=True):
        with open(path, encoding="utf-8") as f:
            pages[path] = Html(f.read())
    for line in broken(pages):
        check("links", False, line)
    path = site + "/index.html"
    menu = {os.path.normpath(os.path.join(site, to.split("#")[0])) for to in pages[path].links}
    for page in glob.glob(TREE + "/docs/**/*.md", recursive=True):
        page = os.path.join(site, os.path.relpath(page, TREE))[:-3] + ".html"
        check("the menu has every page", page in menu, page)
    bad = '<a href="none.html">a</a> <a href="#none">b</a> <img src="https://example.org/c.png">'
    found = list(broken({**pages, path: Html(bad)}))
    check("broken links are found", len(found) >= 3, found)


def check_search(b, site):
    b.open(site + "/index.html", within=site)
    b.mouse("input[name=q]", click=True)
    b.type("architecture")
    b.events.clear()
    b.key("Enter")
    b.wait()
    found = []
    for _ in range(100):
        found = b.js("[...document.querySelectorAll('#search-results li a')].map(a => a.href)")
        if found and b.js("/finished|Found|found/.test(document.querySelector('#search-results p').textContent)"):
            break
        b.js("new Promise(done => setTimeout(done, 50))")
    check("the search finds a page", any("/docs/internals/architecture.html" in to for to in found), found)
    check("search: complaints", not b.complaints(), b.complaints())
    if not found:
        return
    b.events.clear()
    b.mouse("#search-results li a", click=True)
    b.wait()
    at = urllib.parse.unquote(b.js("location.pathname"))
    check("a result opens", at == urllib.parse.unquote(urllib.parse.urlsplit(found[0]).path), at, found)


def main():
    program = browser.find()
    pictures = sys.argv[1] if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory(prefix="rfl_site_") as folder:
        site = folder + "/site"
        make = [TREE + "/docs/site", site]
        made = subprocess.run(make)
        if made.returncode:
            return made.returncode
        check_links(site)
        check("a second time", subprocess.run(make).returncode == 0)
        other = subprocess.run([make[0], folder], stderr=subprocess.PIPE)
        check("other directories are left alone", other.returncode == 1 and os.listdir(folder) == ["site"], other)
        if not program:
            print("skipped: no Chromium; install the package chromium")
            return 1 if browser.failures else 77
        b = browser.Browser(program)
        try:
            b.size(1300, 900)
            b.media()
            for path in sorted(glob.glob(site + "/**/*.html", recursive=True)):
                b.open(path, within=site)
                check(path, not b.complaints(), b.complaints())
                if pictures:
                    name = os.path.relpath(path, site).replace("/", "-")[:-5] + ".png"
                    with open(os.path.join(pictures, name), "wb") as f:
                        f.write(base64.b64decode(b.picture()))
            check_search(b, site)
            if pictures:
                with open(os.path.join(pictures, "found.png"), "wb") as f:
                    f.write(base64.b64decode(b.picture()))
        finally:
            b.close()
    return 1 if browser.failures else 0


sys.exit(main())
