"""The dashboard: HTML views of the API's own answers, at `/`.

In: a browser's request with a session cookie. Out: pages that work without JavaScript, and live parts of
them as server-sent events. It owns no table; every figure comes from the API's handlers and `pipeline.reports`.
"""
