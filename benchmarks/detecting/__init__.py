"""Corpora to measure detectors on: loops spliced into real runs, healthy look-alikes."""
