"""Load that is too much: in time, in one place, in one run, in one process."""
