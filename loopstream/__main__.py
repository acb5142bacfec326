"""``python -m loopstream``: the same as the ``loopstream`` command."""

from loopstream.cli import main

if __name__ == "__main__":
    main()
