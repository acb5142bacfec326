"""State of a run under profile ``extended``: bounded, incremental, packed on its own."""
