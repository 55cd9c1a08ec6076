"""The Firecrawl v1 and v2 wire formats, translated at the edge."""
