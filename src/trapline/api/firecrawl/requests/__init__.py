"""Request models of Firecrawl's wire format, and their translation to pipeline options."""
