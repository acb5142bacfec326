"""loopstream: finds tool-call loops in fleets of AI agents and stops them."""

__version__ = "0.1.0"
