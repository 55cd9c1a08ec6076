"""Schedules: recurrence rules that create jobs, and lists of them.

In: a cron rule or an interval, and a job template. Out: one job a tick.
Owns `queue.schedule` and its runs.
"""
