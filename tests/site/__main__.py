"""Runs the site alone: `python -m tests.site [--port N] [--control N]`, until it is interrupted."""

import argparse
import signal
import sys

from tests.site.control import Control
from tests.site.site import running


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.site", description=__doc__)
    parser.add_argument(
        "--port", type=int, default=0, help="port of the site (default: a free one)"
    )
    parser.add_argument("--control", type=int, default=0, help="port of its controls")
    parser.add_argument("--address", default="127.0.0.1", help="address of both")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with running(options.port, options.address) as site:
        control = site.serve_control(Control(site).find, options.control)
        sys.stdout.write(f"{site.url}\ncontrol {control}\n")
        sys.stdout.flush()
        try:
            signal.pause()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
