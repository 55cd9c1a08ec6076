"""The parts of `make bench-search`: judged abstracts for quality, a generated corpus for speed."""
