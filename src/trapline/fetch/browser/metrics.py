"""Prometheus metrics of the browsers in this process."""

from prometheus_client import Counter, Gauge

PAGES = Counter("trapline_browser_pages_total", "Rendered pages by exit code.", ["exit_code"])
RESTARTS = Counter("trapline_browser_restarts_total", "Browsers that died or were killed.")
TABS = Gauge("trapline_browser_tabs", "Tabs that show a page.")
QUEUE = Gauge("trapline_browser_queue", "Pages that wait for a tab.")
