"""What `make crawl` runs: crawls the URL that was given, or the bundled site if none was."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.site.site import LOOPBACK, running

_TRAPLINE = str(Path(sys.executable).with_name("trapline"))


def main(arguments: list[str]) -> int:
    """With a URL this process becomes the crawl; without, it serves what the crawl visits."""
    if arguments:
        os.execv(_TRAPLINE, [_TRAPLINE, "crawl", *arguments])
    with running() as site:
        return crawl(site.url)


def crawl(url: str) -> int:
    """Crawl the site as a child and return how that ended. Loopback is refused unless opened."""
    opened = ",".join(filter(None, (os.environ.get("TRAPLINE_ALLOW_NETS"), LOOPBACK)))
    environment = os.environ | {"TRAPLINE_ALLOW_NETS": opened}
    child = subprocess.Popen([_TRAPLINE, "crawl", url], env=environment)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            # The terminal sent it to the child too, which decides what it means: pause, then stop.
            continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
