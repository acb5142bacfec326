"""The dashboard: a process of its own, fed by the topics; a slow browser slows nothing."""
