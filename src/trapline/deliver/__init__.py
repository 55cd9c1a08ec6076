"""Webhooks and live streams, both fed by the queue's event log.

In: events of jobs. Out: signed deliveries, each retried until it is received or dead, and live streams
that any number of subscribers follow. Owns the schema `deliver`: endpoint, delivery, inbox.
"""
