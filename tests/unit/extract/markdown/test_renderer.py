"""Markdown of whole pages, one construct at a time."""

import pytest

from trapline.extract import extract
from trapline.model import ExtractOptions, Format

URL = "https://example.com/dir/page.html"
WHOLE = ExtractOptions(only_main_content=False)


def markdown(body: str, options: ExtractOptions = WHOLE) -> str:
    return extract(f"<body>{body}</body>".encode(), "text/html", URL, options).markdown


CONSTRUCTS = {
    "heading": ("<h1>One</h1><h3>Three</h3>", "# One\n\n### Three\n"),
    "heading without its anchor": ('<h2>T <a href="#t">¶</a></h2>', "## T\n"),
    "emphasis": ("<p><b>bold</b> <i>thin</i> <code>a_b</code></p>", "**bold** *thin* `a_b`\n"),
    "emphasis that ends in punctuation": (
        "<p><b>Note:</b> words, <em>so.</em></p>",
        "**Note:** words, *so.*\n",
    ),
    "emphasis that markdown cannot say": ("<p>a<b>(b)</b>c</p>", "a<strong>(b)</strong>c\n"),
    "tags in code": (
        "<p><code>&lt;em&gt;a.&lt;/em&gt;</code> <b>x:</b></p>",
        "`<em>a.</em>` **x:**\n",
    ),
    "link": ('<p><a href="../x?a=1#f">t</a></p>', "[t](https://example.com/x?a=1#f)\n"),
    "link within": ('<p><a href="#f">t</a></p>', "[t](https://example.com/dir/page.html#f)\n"),
    "link with spaces": (
        '<p><a href="a b(c)">t</a></p>',
        "[t](https://example.com/dir/a%20b%28c%29)\n",
    ),
    "empty link": ('<p>a <a href="/x"></a>b</p>', "a b\n"),
    "script link": ('<p><a href="javascript:x()">t</a></p>', "t\n"),
    "mail": ('<p><a href="mailto:a@b.c">t</a></p>', "[t](mailto:a@b.c)\n"),
    "image": (
        '<p>x <img src="i.png" alt="An [i]"></p>',
        "x ![An \\[i\\]](https://example.com/dir/i.png)\n",
    ),
    "lazy image": (
        '<p>x <img src="data:image/gif;base64,R0" data-src="/l.png"></p>',
        "x ![](https://example.com/l.png)\n",
    ),
    "pixel": ('<p>x<img src="/t.gif" width="1" height="1"></p>', "x\n"),
    "nested list": (
        "<ul><li>a<ol><li>b</li><li>c</li></ol></li><li>d</li></ul>",
        "- a\n  1. b\n  2. c\n- d\n",
    ),
    # CommonMark lets a list that does not start at one begin only after a blank line.
    "numbered from three": (
        "<ul><li>a<ol start=3><li>b</li><li>c</li></ol></li><li>d</li></ul>",
        "- a\n\n  3. b\n  4. c\n- d\n",
    ),
    "code": (
        '<div class="highlight-python"><pre>def f():\n    return 1 &lt; 2\n</pre></div>',
        "```python\ndef f():\n    return 1 < 2\n```\n",
    ),
    "code class": ('<pre><code class="language-js">a</code></pre>', "```js\na\n```\n"),
    "table": (
        "<table><tr><th>H</th><th>I</th></tr><tr><td>a|b</td><td>c</td></tr></table>",
        "| H | I |\n| --- | --- |\n| a\\|b | c |\n",
    ),
    "table with spans": (
        (
            "<table><tr><th colspan=2>H</th><th>I</th></tr>"
            "<tr><td rowspan=2>a</td><td>b</td><td>c</td></tr><tr><td>d</td><td>e</td></tr></table>"
        ),
        "| H |  | I |\n| --- | --- | --- |\n| a | b | c |\n|  | d | e |\n",
    ),
    "layout table": (
        "<table><tr><td><p>one</p><p>two</p></td><td><h2>H</h2></td></tr></table>",
        "one\n\ntwo\n\n## H\n",
    ),
    "table in a layout table": (
        (
            "<table><tr><td>"
            "<table><tr><th>H</th><th>I</th></tr><tr><td>a</td><td>b</td></tr></table>"
            "</td></tr></table>"
        ),
        "| H | I |\n| --- | --- |\n| a | b |\n",
    ),
    "definition list": ("<dl><dt>T</dt><dd>D</dd></dl>", "T\n\n: D\n"),
    "details": ("<details><summary>S</summary><p>B</p></details>", "**S**\n\nB\n"),
    "quote": ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b\n"),
    "formula": (
        '<p>x <math><mi>y</mi><annotation encoding="application/x-tex">y_1^2</annotation></math></p>',
        "x $y_1^2$\n",
    ),
    "formula twice": (
        (
            '<p><span class="katex"><math display="block"><semantics><mi>z</mi>'
            '<annotation encoding="application/x-tex">z</annotation></semantics></math>'
            '<span class="katex-html">z</span></span></p>'
        ),
        "$$z$$\n",
    ),
    "footnote": (
        (
            '<p>a<sup><a href="#fn1">1</a></sup></p>'
            '<ol><li id="fn1"><p>note <a href="#r1">↩</a></p></li></ol>'
        ),
        "a[^1]\n\n[^1]: note\n",
    ),
    "break": ("<p>a<br>b</p>", "a  \nb\n"),
    "no list by accident": ("<p>1. a</p><p># b</p><p>* c</p>", "1\\. a\n\n\\# b\n\n\\* c\n"),
    "card in a link": (
        '<a href="/p"><h3>T</h3><div>x</div></a>',
        "### [T](https://example.com/p)\n\nx\n",
    ),
    "invisible characters": ("<p>a\u200bb\u00adc</p>", "abc\n"),
    "scripts": ("<p>a</p><script>b</script><style>c</style><svg><text>d</text></svg>", "a\n"),
}


@pytest.mark.parametrize(("body", "expected"), CONSTRUCTS.values(), ids=CONSTRUCTS)
def test_construct(body: str, expected: str) -> None:
    assert markdown(body) == expected


def test_data_images_are_kept_when_asked_for() -> None:
    body = '<p>x <img src="data:image/png;base64,AAAA" alt="b"></p>'
    kept = ExtractOptions(only_main_content=False, remove_base64_images=False)
    assert markdown(body) == "x\n"
    assert markdown(body, kept) == "x ![b](data:image/png;base64,AAAA)\n"


def test_base_element_moves_links() -> None:
    body = b'<head><base href="/other/"></head><body><p><a href="x">t</a></p></body>'
    assert extract(body, "text/html", URL, WHOLE).markdown == "[t](https://example.com/other/x)\n"


def test_include_and_exclude_tags() -> None:
    body = '<p>a</p><div class="x"><p>b</p><p class="y">c</p></div><p>d</p>'
    assert markdown(body, ExtractOptions(include_tags=(".x",))) == "b\n\nc\n"
    assert markdown(body, ExtractOptions(include_tags=(".x",), exclude_tags=(".y",))) == "b\n"
    no_x = ExtractOptions(only_main_content=False, exclude_tags=(".x",))
    assert markdown(body, no_x) == "a\n\nd\n"


def test_a_tag_that_is_not_there_gives_a_warning() -> None:
    found = extract(b"<p>a</p>", "text/html", URL, ExtractOptions(include_tags=(".none",)))
    assert found.warning


def test_cleaned_html_acts_on_nothing() -> None:
    body = '<p onclick="x()" style="a"><a href="../y">t</a><script>z</script></p>'
    options = ExtractOptions(formats=frozenset({Format.HTML}), only_main_content=False)
    found = extract(f"<body>{body}</body>".encode(), "text/html", URL, options)
    assert found.html == '<p><a href="https://example.com/y">t</a></p>'
    assert found.markdown == ""
