"""Forensics: the recorded events folded again by the same engine, and what can be learnt from it.

``sources`` read a topic or a file, ``run`` folds them, ``diff`` compares verdicts, ``explain`` and
``report`` show a run, ``tables`` make Parquet and SQL of them, ``tune`` tries thresholds.
"""
