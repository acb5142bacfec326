"""The worker: a Faust application that feeds events to the pure fold and keeps its promises."""
