"""How the vocabulary becomes bytes: frames, JSON events, verdicts, routing, connection settings."""
