"""Sites under management: their config, schedules, monitors and reported changes.

In: what a person decides about a site. Out: jobs, schedules and the history of the config.
Owns no table: `store` and `queue` own the rows.
"""
