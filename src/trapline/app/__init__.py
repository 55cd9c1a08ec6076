"""The wiring: the one package that knows all others.

`server` answers HTTP beside a worker, `worker` runs queued tasks, `scraper` scrapes for a caller in the
same process, `duties` lists the maintenance. Every object is complete when it is constructed.
"""

from trapline.app.scraper import open_scraper
from trapline.app.worker import run_worker, work

__all__ = ["open_scraper", "run_worker", "work"]
