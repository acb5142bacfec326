"""State to recover, and the clock that says when its owner is back."""
