"""Telling others: webhooks out, live streams, incoming webhooks.

In: the queue's event log. Out: signed deliveries, each attempted until it is received or set aside.
Owns the schema `deliver`: endpoint, delivery, attempt, inbox.
"""
