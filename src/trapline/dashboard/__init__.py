"""Pages for people: jobs, sites, changes and search in a browser.

In: HTTP requests of a member. Out: HTML.
Owns no table.
"""
