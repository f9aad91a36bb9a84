"""What the tests of tables share: a matrix with names, and HTML that is read as a browser would."""

from html.parser import HTMLParser

import numpy as np


class Columns:
    """The least that a dataframe is: columns, and a way to become an array."""

    def __init__(self, array, columns):
        self.array, self.columns = array, list(columns)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.array, dtype)


class Page(HTMLParser):
    """Elements opened and closed in their turn, the texts of cells, and what draws bars."""

    def __init__(self):
        super().__init__()
        self.open, self.rows, self.tables, self.styles, self.seen = [], [], 0, [], set()
        self.paragraphs, self.css = [], ""

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.seen.add(tag)
        assert not any(name.startswith("on") for name, _ in attributes)
        assert set(dict(attributes)) <= {"class", "style", "scope"}
        if tag == "table":
            self.tables += 1
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.styles.append(dict(attributes))
        if tag == "p":
            self.paragraphs.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        inside = self.open[-1] if self.open else ""
        if inside in ("td", "th"):
            self.rows[-1][-1] += data
        elif inside == "style":
            self.css += data
        elif "p" in self.open:
            self.paragraphs[-1] += data


def balanced(html):
    page = Page()
    page.feed(html)
    page.close()
    assert page.open == []
    assert "script" not in page.seen
    return page
