"""Pages for people: jobs, sites, changes and search in a browser. To come: nothing is here yet.

In: HTTP requests of a member. Out: HTML.
Owns no table.
"""
