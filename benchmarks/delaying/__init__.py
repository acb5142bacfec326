"""Clients that measure from an event to the verdict on it."""
