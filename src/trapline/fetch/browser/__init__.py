"""Pages in a browser: the same request in and the same result out as over HTTP.

In: a URL with its limits and render options. Out: the DOM as HTML, every document request, screenshots.
Owns no table and knows no database; Chromium is driven over its DevTools protocol.
"""
