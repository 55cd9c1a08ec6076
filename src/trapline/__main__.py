"""`python -m trapline` is `trapline`."""

from trapline.cli import main

main()
