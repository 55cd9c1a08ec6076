"""Telling others: webhooks out and live streams, both fed by the queue's event log.

In: events of jobs. Out: signed deliveries, each attempted until it is received or set aside, and
feeds that any number of watchers follow. Owns the schema `deliver`: endpoint, delivery, inbox.
"""
