"""Run by `process` as a script: ask the kernel for SIGKILL at the parent's death, then exec.

A script and not a ``preexec_fn``, which is not safe in a process with threads.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """``_launch.py PARENT_PID COMMAND…``, the command by its absolute path."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The parent may have died before the call above.
    if os.getppid() == parent:
        os.execv(command[0], command)  # noqa: S606 - the command of `ChildProcess`


if __name__ == "__main__":
    main()
