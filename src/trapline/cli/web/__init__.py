"""Commands for websites: crawl, scrape, map, and their stored content."""
