"""Stall guard, watchdog, continuity, hard exit, stop deadline."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from loopstream.errors import CorruptStateError, KafkaUnreachableError, SettingsError
from loopstream.runtime.hardening.continuity import (
    ContinuityError,
    OffsetRegressionError,
    explain_jump,
)
from loopstream.runtime.hardening.exits import exit_code_of
from loopstream.runtime.hardening.stall import StalledError, StallGuard
from loopstream.runtime.hardening.watchdog import NoProgressError, Watchdog


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_guard_is_armed_by_the_first_tick_only() -> None:
    clock = Clock()
    guard = StallGuard(10.0, clock)
    clock.now += 60  # a long recovery
    guard.check()
    guard.tick()
    clock.now += 3.9
    guard.check()


@pytest.mark.parametrize("call", ["check", "tick"])
def test_who_slept_must_not_write(call: str) -> None:
    clock = Clock()
    guard = StallGuard(10.0, clock)
    guard.tick()
    clock.now += 4.1
    with pytest.raises(StalledError, match=r"4\.1 s"):
        getattr(guard, call)()


def test_the_watchdog_wants_progress_only_while_work_waits() -> None:
    dog = Watchdog("recovery", 10.0)
    dog.observe(1, waiting=True, now=0.0)
    dog.observe(1, waiting=False, now=9.0)
    dog.observe(1, waiting=True, now=15.0)
    dog.observe(2, waiting=True, now=24.0)
    with pytest.raises(NoProgressError, match="recovery without progress for 10 s"):
        dog.observe(2, waiting=True, now=34.1)


async def test_a_jump_that_the_log_has_too_is_honest() -> None:
    async def first(partition: int, offset: int) -> int:
        assert (partition, offset) == (2, 10)
        return 14

    assert await explain_jump(2, 10, 14, first) == 4


async def test_a_jump_over_records_is_not() -> None:
    async def first(partition: int, offset: int) -> int:
        return 11

    with pytest.raises(ContinuityError, match="expected offset 10, got 14, but the log has 11"):
        await explain_jump(2, 10, 14, first)


async def test_a_step_back_is_not() -> None:
    async def first(partition: int, offset: int) -> int:
        raise AssertionError("not asked")

    with pytest.raises(OffsetRegressionError, match="created again"):
        await explain_jump(2, 10, 0, first)


def test_exit_codes() -> None:
    assert exit_code_of(RuntimeError("x")) == 70
    assert exit_code_of(CorruptStateError("x")) == 70
    assert exit_code_of(KafkaUnreachableError("x")) == 4
    assert exit_code_of(SettingsError("x")) == 3


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_hard_exit_does_not_wait_for_anything() -> None:
    done = run("""
        import atexit, threading, time
        from loopstream.runtime.hardening.exits import leave
        atexit.register(time.sleep, 60)
        threading.Thread(target=time.sleep, args=(60,)).start()
        leave(RuntimeError("the broker refused it"))
    """)
    assert done.returncode == 70
    assert "nothing more is committed" in done.stderr
    assert "the broker refused it" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("committed", "code"), [(True, 0), (False, 70)])
def test_a_stop_that_hangs_is_ended(committed: bool, code: int) -> None:
    done = run(f"""
        import time
        from loopstream.runtime.hardening.deadline import StopDeadline
        deadline = StopDeadline(0.1)
        deadline.start()
        deadline.committed = {committed}
        time.sleep(60)
    """)
    assert done.returncode == code
