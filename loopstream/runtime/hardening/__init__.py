"""What stock Faust gets wrong about delivery, put right; one concern a file.

Everything here overrides private parts of one exact version; `upstream` refuses any other.
"""
