"""The well-behaved part of the site, one module a section; each yields rows of the page table."""
