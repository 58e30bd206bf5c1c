"""Worker threads: progress, interrupts and errors."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import numpy as np
import processes
import pytest
from fits import kernel_rows

import powerkern as pk
from powerkern._engine import gather, threads
from powerkern._engine.by_column import for_each_group
from powerkern._engine.gather import FitScratch
from powerkern.kernels.transforms.family import FAMILIES

N_THREADS = [1, 2, 8]


def columns_of_all_kinds(n=300, p=200, seed=0):
    """Return a matrix (n, p) with columns of both signs, positive, tight, and with missing values.

    The default shape has enough columns for many groups.
    """
    x = np.random.default_rng(seed).normal(size=(n, p))
    x[:, ::3] = np.exp(x[:, ::3])
    x[:, 1::7] = 1e4 + 1e-3 * x[:, 1::7]
    x[::11, ::5] = np.nan
    return x


def driver_threads():
    """Shut down the helper threads and wait for them; return those that are still running."""
    threads.shutdown()
    found = [t for t in threading.enumerate() if t.name.startswith("powerkern")]
    for thread in found:
        thread.join(timeout=5.0)
    return [t for t in found if t.is_alive()]


@pytest.mark.parametrize("family", FAMILIES)
def test_results_do_not_depend_on_the_number_of_threads(family):
    x = abs(columns_of_all_kinds()) if family == "box-cox" else columns_of_all_kinds()
    fits = [pk.fit(x, family, n_threads=k) for k in N_THREADS]
    for fit, k in zip(fits, N_THREADS, strict=True):
        np.testing.assert_array_equal(kernel_rows(fit), kernel_rows(fits[0]))
        z = fit.transform(x, n_threads=k)
        np.testing.assert_array_equal(z, fits[0].transform(x, n_threads=1))
        np.testing.assert_array_equal(fit.inverse_transform(z, n_threads=k), fit.inverse_transform(z, n_threads=1))
        np.testing.assert_array_equal(fit.profile([0.0, 1.0], n_threads=k), fits[0].profile([0.0, 1.0], n_threads=1))
        np.testing.assert_array_equal(fit.confint(n_threads=k), fits[0].confint(n_threads=1))
    assert not driver_threads()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_few_long_columns_have_the_same_bits_for_any_number_of_threads(family, p, weighted):
    rng, n = np.random.default_rng(5), 70_001
    x = rng.lognormal(size=(n, p))
    x[::1000] = np.nan
    weight = rng.exponential(size=n) if weighted else None
    expected = kernel_rows(pk.fit(x, family, sample_weight=weight, n_threads=1))
    for given in (x, np.asfortranarray(x), x.astype(">f8"), np.repeat(x, 2, axis=0)[::2]):
        for n_threads in (2, 4):
            fit = pk.fit(given, family, sample_weight=weight, n_threads=n_threads)
            np.testing.assert_array_equal(kernel_rows(fit), expected)
    single = [kernel_rows(pk.fit(x.astype(np.float32), family, sample_weight=weight, n_threads=k)) for k in (1, 2)]
    np.testing.assert_array_equal(*single)
    shifted = [kernel_rows(pk.fit(x, "box-cox", sample_weight=weight, shift=0.5, n_threads=k)) for k in (1, 2)]
    np.testing.assert_array_equal(*shifted)
    assert not driver_threads()


@pytest.mark.parametrize("kind, maker", [("work", "new_work"), ("lockstep", "new_lockstep_work")])
def test_threads_allocate_scratch_space_without_a_lock(kind, maker, monkeypatch):
    """A child forked during the allocation would otherwise wait for a lock held by a thread that it does not have."""
    both, found = threading.Barrier(2, timeout=5), []
    monkeypatch.setattr(gather, maker, lambda *_: both.wait())
    makers = [threading.Thread(target=lambda: found.append(getattr(FitScratch(10), kind))) for _ in range(2)]
    for thread in makers:
        thread.start()
    for thread in makers:
        thread.join()
    assert sorted(found) == [0, 1]


def test_eight_python_threads_fit_at_once():
    data = [columns_of_all_kinds(seed=seed) for seed in range(8)]
    alone = [kernel_rows(pk.fit(x, n_threads=1)) for x in data]
    with ThreadPoolExecutor(8) as pool:
        fits = list(pool.map(lambda x: pk.fit(x, n_threads=2), data * 2))
        images = list(pool.map(lambda pair: pair[0].transform(pair[1]), zip(fits, data * 2, strict=True)))
    for fit, results, z, x in zip(fits, alone * 2, images, data * 2, strict=True):
        np.testing.assert_array_equal(kernel_rows(fit), results)
        np.testing.assert_array_equal(z, fit.transform(x, n_threads=1))


@pytest.mark.slow
def test_eight_python_threads_make_the_first_fit_of_a_process():
    """The threads race to compile or load the same entries."""
    code = (
        "import numpy as np, powerkern as pk, threading\n"
        "x = np.random.default_rng(0).lognormal(size=(300, 40))\n"
        "found, start = [], threading.Barrier(8)\n"
        "def job():\n"
        "    start.wait()\n"
        "    found.append(pk.fit(x, 'box-cox').lmbda)\n"
        "threads = [threading.Thread(target=job) for _ in range(8)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(len(found), all((lmbda == found[0]).all() for lmbda in found))"
    )
    assert processes.run(code) == "8 True"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_forked_after_a_fit_can_fit():
    """The child starts threads of its own and fits; with OpenMP it would crash."""
    code = (
        "import os, sys, numpy as np, powerkern as pk\n"
        "x = np.random.default_rng(0).normal(size=(500, 100))\n"
        "before = pk.fit(x, n_threads=2).lmbda\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if (pk.fit(x, n_threads=2).lmbda == before).all() else 3)\n"
        "_, status = os.waitpid(child, 0)\n"
        "print(os.waitstatus_to_exitcode(status), (pk.fit(x, n_threads=2).lmbda == before).all())"
    )
    assert processes.run(code) == "0 True"


def test_default_number_of_threads():
    assert threads.default_threads() >= 1
    if hasattr(os, "sched_getaffinity"):
        code = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); "
        code += "from powerkern._engine.threads import default_threads; print(default_threads())"
        assert processes.run(code) == "1"


@pytest.mark.parametrize("granted", [0, 1, 2])
def test_a_limit_on_threads_means_fewer_threads(granted, monkeypatch):
    x = columns_of_all_kinds(2000, 40)
    expected, start, started = pk.fit(x, n_threads=1).lmbda, threading.Thread.start, []

    def start_some(thread):
        if len(started) == granted:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_some)
    threads.shutdown()
    np.testing.assert_array_equal(pk.fit(x, n_threads=4).lmbda, expected)
    assert len(started) == granted


@pytest.mark.parametrize(
    "n_threads, error",
    [(0, ValueError), (-1, ValueError), (1.0, TypeError), ("2", TypeError), (True, TypeError), ([2], TypeError)],
)
def test_number_of_threads_is_checked(n_threads, error):
    with pytest.raises(error, match="n_threads must be"):
        pk.fit(columns_of_all_kinds(10, 2), n_threads=n_threads)


def test_numpy_integers_are_numbers_of_threads():
    x = columns_of_all_kinds(50, 10)
    np.testing.assert_array_equal(pk.fit(x, n_threads=np.int32(2)).lmbda, pk.fit(x, n_threads=None).lmbda)


# --- errors and interruption --------------------------------------------------------------------------


@pytest.mark.parametrize("progress", [False, True])
@pytest.mark.parametrize("n_threads", N_THREADS)
def test_an_exception_in_a_job_is_passed_on(n_threads, progress):
    """The exception is unchanged, waiting jobs are dropped, and no thread is left."""
    done = []

    def job(group):
        if group.start == 64:
            raise MemoryError("in a job")
        time.sleep(0.001)
        done.append(group)

    with pytest.raises(MemoryError, match="in a job"):
        for_each_group(job, (10_000, 8 * 1000), n_threads, progress)
    assert len(done) < 500
    assert not driver_threads()


def test_an_interrupt_while_waiting_is_passed_on(monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(threads, "_await_failures", interrupted)
    done = []

    def job(group):
        time.sleep(0.001)
        done.append(group)

    with pytest.raises(KeyboardInterrupt):
        for_each_group(job, (10_000, 8 * 1000), 2)
    assert len(done) < 500
    assert not driver_threads()


# --- threads that help ----------------------------------------------------------------------------------


def test_a_helper_is_reused_for_the_next_task():
    completions, at_work = threads.Completions(), []
    for _ in range(20):
        assert len(threads.submit(1, lambda: at_work.append(threading.get_ident()), completions)) == 1
        assert completions.get(timeout=60) is None
    assert len(set(at_work)) == 1


def test_an_error_of_a_helper_is_raised_and_the_helper_is_reused():
    completions, error = threads.Completions(), KeyboardInterrupt()

    def fail():
        raise error

    for _ in range(3):
        threads.submit(1, fail, completions)
        assert completions.get(timeout=60) is error
    assert not driver_threads()


def test_waiting_helpers_do_not_block_nested_jobs():
    """A task that submits a task and waits for it occupies a helper; further helpers are started."""
    completions = threads.Completions()

    def submit_on(depth):
        if depth:
            within = threads.Completions()
            assert len(threads.submit(1, lambda: submit_on(depth - 1), within)) == 1
            assert within.get(timeout=60) is None

    threads.submit(1, lambda: submit_on(5), completions)
    assert completions.get(timeout=60) is None


def test_a_task_that_no_helper_has_started_is_cancelled(monkeypatch):
    """The caller does not wait for a helper that the system has not woken yet, and the helper can be used again."""
    monkeypatch.setattr(threading.Thread, "start", lambda thread: None)
    threads.shutdown()
    done = []
    tasks = threads.submit(2, lambda: done.append("first"), threads.Completions())
    begun, waiting = (task.helper for task in tasks)
    begun.tasks.put(None)
    begun.run()
    assert threads.cancel(tasks) == 1
    assert threads._idle == [begun, waiting]
    threads.submit(1, lambda: done.append("second"), threads.Completions())
    waiting.tasks.put(None)
    waiting.run()  # the cancelled task, and the other
    assert done == ["first", "second"]
    assert threads._idle == [begun, waiting]
    threads._idle.clear()


def test_idle_helpers_end_by_themselves(monkeypatch):
    threads.shutdown()
    monkeypatch.setattr(threads, "_PATIENCE", 0.01)
    completions = threads.Completions()
    threads.submit(2, lambda: None, completions)
    assert [completions.get(timeout=60) for _ in range(2)] == [None, None]
    deadline = time.monotonic() + 60.0
    while threads._idle and time.monotonic() < deadline:
        time.sleep(0.001)
    assert threads._idle == []


def test_helpers_that_exit_when_idle_lose_no_task(monkeypatch):
    """Helpers exit after 10 microseconds, often at the moment when a task is submitted."""
    threads.shutdown()
    monkeypatch.setattr(threads, "_PATIENCE", 1e-5)
    completions = threads.Completions()
    for _ in range(2000):
        threads.submit(1, lambda: None, completions)
        assert completions.get(timeout=60) is None


def test_helpers_keep_no_array_alive():
    x = np.zeros(10)
    alive, completions = weakref.ref(x), threads.Completions()
    threads.submit(1, functools.partial(np.sum, x), completions)
    assert completions.get(timeout=60) is None
    del x
    deadline = time.monotonic() + 60.0
    while alive() is not None and time.monotonic() < deadline:
        time.sleep(0.001)
    assert alive() is None


@pytest.mark.parametrize("use_calling_thread", [False, True])
def test_an_error_of_a_helper_keeps_no_array_alive(use_calling_thread):
    """The error's traceback does not refer to itself, so arrays are freed without the garbage collector."""
    helped = threading.Event()

    def fail(x, part):
        if threading.current_thread() is threading.main_thread():
            assert helped.wait(timeout=60)
            return
        helped.set()
        raise ValueError("in a helper")

    x = np.zeros(10)
    alive = weakref.ref(x)
    gc.disable()
    try:
        with contextlib.suppress(ValueError):
            threads.run_parallel(
                functools.partial(fail, x), PARTS, (1000, 1000), 2, use_calling_thread=use_calling_thread
            )
        del x
        deadline = time.monotonic() + 10.0
        while alive() is not None and time.monotonic() < deadline:
            time.sleep(0.001)
        assert alive() is None
    finally:
        gc.enable()


def test_queue_exceptions_of_a_job_are_passed_on():
    """The calling thread waits on a queue. A queue.Empty raised by a job must not be mistaken for the queue's own."""

    def fail(part):
        raise queue.Empty

    with pytest.raises(queue.Empty):
        threads.run_parallel(fail, PARTS, (1000, 1000), 2)


@pytest.mark.parametrize("use_calling_thread", [False, True])
def test_no_task_is_submitted_during_interpreter_shutdown(use_calling_thread):
    """Idle helpers never wake during shutdown, so a caller would wait for ever."""
    code = (
        "import functools, os, sys\n"
        "from powerkern._engine import threads\n"
        f"share = functools.partial(threads.run_parallel, use_calling_thread={use_calling_thread})\n"
        "write, ends = os.write, sys.is_finalizing\n"
        "parts = [(slice(k, k + 1),) for k in range(200)]\n"
        "share(lambda part: None, parts, (1000, 1000), 3)\n"
        "class Late:\n"
        "    def __del__(self, share=share, write=write, ends=ends, parts=parts):\n"
        "        done = []\n"
        "        share(done.append, parts, (1000, 1000), 3)\n"
        "        write(1, b'%d %d' % (ends(), len(done)))\n"
        "late = Late()\n"
        "late.itself = late\n"
    )
    assert processes.run(code) == "1 200"


def test_signal_handlers_may_submit_tasks(monkeypatch):
    """The handler interrupts a thread while this thread submits a task."""
    done, handled = [], []

    class Interrupted(list):
        def pop(self):
            if self and not handled:
                signal.raise_signal(signal.SIGINT)
            return super().pop()

    def handle(*_):
        handled.append(None)
        share_out(done.append, PARTS, (1000, 1000), 3)

    threads.shutdown()
    monkeypatch.setattr(threads, "_idle", Interrupted())
    before = signal.signal(signal.SIGINT, handle)
    try:
        for _ in range(2):  # the first time, there is no idle helper yet
            share_out(done.append, PARTS, (1000, 1000), 3)
    finally:
        signal.signal(signal.SIGINT, before)
        threads.shutdown()
    assert (len(handled), len(done)) == (1, 3 * len(PARTS))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_has_helpers_of_its_own():
    """Fork while the parent's helpers are idle, and while they are busy. Python's warning about the fork is ignored."""
    code = (
        "import os, threading\n"
        "from powerkern._engine import threads\n"
        "completions, go_on = threads.Completions(), threading.Event()\n"
        "def asked(n):\n"
        "    threads.submit(n, lambda: None, completions)\n"
        "    return [completions.get(timeout=60) for _ in range(n)] == [None] * n\n"
        "def forked():\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os._exit(0 if asked(2) and asked(2) else 3)\n"
        "    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "print(asked(2), forked(), asked(2), end=' ')\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "threads.submit(1, go_on.wait, completions)\n"
        "print(forked(), go_on.set(), completions.get(timeout=60), asked(2))"
    )
    assert processes.run(code) == "True 0 True 0 None None True"


# --- parts that the calling thread shares with others ---------------------------------------------------

PARTS = [(slice(k, k + 1),) for k in range(200)]
share_out = functools.partial(threads.run_parallel, use_calling_thread=True)


@pytest.mark.parametrize("n_threads", N_THREADS)
def test_every_part_is_done_once(n_threads):
    done = []
    share_out(done.append, PARTS, (1000, 1000), n_threads)
    assert sorted(part.start for part in done) == list(range(200))


@pytest.mark.parametrize("n_threads", N_THREADS)
def test_the_requested_number_of_threads_runs_at_once(n_threads):
    all_there, at_work = threading.Barrier(n_threads), set()

    def job(part):
        all_there.wait(timeout=60)
        at_work.add(threading.get_ident())

    share_out(job, PARTS[:n_threads], (1000, 1000), n_threads)
    assert len(at_work) == n_threads
    assert threading.get_ident() in at_work


def test_a_few_values_are_transformed_without_helpers():
    at_work = set()
    share_out(lambda part: at_work.add(threading.get_ident()), PARTS, (10, 10), 8)
    assert at_work == {threading.get_ident()}


@pytest.mark.parametrize("granted", [0, 1])
def test_parts_are_completed_by_the_threads_that_could_start(granted, monkeypatch):
    start, started, done = threading.Thread.start, [], []

    def start_some(thread):
        if len(started) == granted:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    threads.shutdown()
    monkeypatch.setattr(threading.Thread, "start", start_some)
    share_out(done.append, PARTS, (1000, 1000), 4)
    assert len(started) == granted
    assert len(done) == 200


def test_ctrl_c_during_thread_start_cancels_the_job(monkeypatch):
    start, begun, go_on, ended, done = threading.Thread.start, threading.Event(), threading.Event(), [], []

    def start_one(thread):
        if ended:
            assert begun.wait(timeout=60)
            raise KeyboardInterrupt
        ended.append(thread)
        start(thread)

    def job(part):
        begun.set()
        assert go_on.wait(timeout=60)
        done.append(part)

    threads.shutdown()
    monkeypatch.setattr(threading.Thread, "start", start_one)
    with pytest.raises(KeyboardInterrupt):
        share_out(job, PARTS, (1000, 1000), 3)
    go_on.set()
    assert not driver_threads()
    assert len(done) == 1


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("by_caller", [True, False])
@pytest.mark.parametrize("n_threads", [1, 2, 8])
def test_an_exception_ends_a_parallel_job(error, by_caller, n_threads):
    """Whichever thread raises it, the caller gets the exception unchanged, and waiting parts are dropped."""
    caller, failing, done = threading.get_ident(), threading.Event(), []

    def job(part):
        if (threading.get_ident() == caller) == (by_caller or n_threads == 1) and not failing.is_set():
            failing.set()
            raise error("in a job")
        assert failing.wait(timeout=60)
        time.sleep(0.1)
        done.append(part)

    with pytest.raises(error, match="in a job"):
        share_out(job, PARTS, (1000, 1000), n_threads)
    assert len(done) <= 2 * n_threads


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to another process")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_ends_a_transform(n_threads):
    """Interrupt a transform that would take minutes; its matrix is one value, repeated by broadcasting."""
    code = (
        "import numpy as np, powerkern as pk\n"
        "x = np.random.default_rng(0).normal(size=(100, 1))\n"
        "fit = pk.fit(x)\n"
        "from powerkern._engine.apply import transform_matrix\n"
        "codes, rows = fit._table.family_codes, fit._table.kernel_rows\n"
        "transform_matrix(x, None, codes, 0, rows, 1)\n"  # compiles, which Ctrl-C would wait for
        "print('ready', flush=True)\n"
        "huge = np.broadcast_to(x[:1], (3 * 10**10, 1))\n"
        f"transform_matrix(huge, None, codes, 0, rows, {n_threads})"
    )
    _interrupt(code)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to another process")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_ends_a_fit(n_threads):
    """Interrupt a fit that would take hours; its matrix is one column, repeated by broadcasting."""
    code = (
        "import numpy as np, powerkern as pk\n"
        "x = np.random.default_rng(0).lognormal(size=100_000)\n"
        "pk.fit(x[:1000], 'box-cox')\n"
        "print('ready', flush=True)\n"
        f"pk.fit(np.broadcast_to(x[:, None], (100_000, 300_000)), 'box-cox', n_threads={n_threads})"
    )
    _interrupt(code)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to another process")
@pytest.mark.parametrize(
    "call",
    [
        "fit_censored_matrix(*wide(2_000_000), 0, np.full(2_000_000, np.nan), None, 1)",
        "fit_censored_matrix(*wide(2_000_000), 0, np.full(2_000_000, np.nan), None, 2)",
        "pk.fit(wide(200_000)[0], 'box-cox', below=wide(200_000)[1] < 0.0, n_threads=2)",
    ],
    ids=["one thread", "two threads", "with its reading"],
)
def test_ctrl_c_ends_a_censored_fit(call):
    """Interrupt a fit that would take many seconds; its matrix is a column of 60 cells, repeated by broadcasting."""
    code = (
        "import numpy as np, powerkern as pk\n"
        "from powerkern._engine.censored import fit_censored_matrix\n"
        "x = np.random.default_rng(0).lognormal(size=(60, 1))\n"
        "ends = np.where(x < np.quantile(x, 0.3), -np.inf, np.nan)\n"
        "pk.fit(x, 'box-cox', below=ends < 0.0)\n"
        "wide = lambda p: [np.broadcast_to(each, (60, p)) for each in (x, ends)]\n"
        "print('ready', flush=True)\n"
        f"{call}"
    )
    _interrupt(code)


def _interrupt(code):
    """Run code that prints "ready" and never ends; check that Ctrl-C ends it."""
    with processes.start(code) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=10)  # a guard against hanging, not a measurement
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode != 0
    assert err.rstrip().endswith("KeyboardInterrupt")


def test_a_thread_that_has_done_its_work_is_used_again_soon():
    """Starting a thread takes longer than a small fit."""

    def run_one():
        found, completions = [], threads.Completions()
        threads.submit(1, lambda: found.append(threading.get_ident()), completions)
        assert completions.get(timeout=60.0) is None
        return found[0]

    threads.shutdown()
    first = run_one()
    time.sleep(0.05)
    assert run_one() == first


def test_only_matrices_with_many_values_are_shared_by_default(monkeypatch):
    monkeypatch.setattr(threads, "default_threads", lambda: 7)
    counts = [threads.thread_count(None, n) for n in (1, 32_767, 32_768, 10**9)]
    assert counts == [1, 1, 7, 7]
    assert threads.thread_count(None) == 7
    assert threads.thread_count(3, 1) == 3
    assert threads.thread_count(10**9) == 4096


# --- progress -----------------------------------------------------------------------------------------


class Bar:
    """A stand-in for tqdm's progress bar."""

    made: ClassVar[list[Bar]] = []

    def __init__(self, total, **options):
        self.total, self.options, self.seen, self.closed = total, options, 0, False
        Bar.made.append(self)

    def update(self, n):
        assert not self.closed
        self.seen += n

    def close(self):
        self.closed = True


@pytest.fixture
def bars(monkeypatch):
    monkeypatch.setattr("tqdm.tqdm", Bar)
    monkeypatch.setattr(Bar, "made", [])
    return Bar.made


@pytest.mark.parametrize("n_threads", [1, 2])
def test_progress_counts_columns(bars, n_threads):
    x = columns_of_all_kinds(2000, 50)
    np.testing.assert_array_equal(
        pk.fit(x, progress=True, n_threads=n_threads).lmbda, pk.fit(x, n_threads=n_threads).lmbda
    )
    (bar,) = bars
    assert (bar.total, bar.seen, bar.closed) == (50, 50, True)
    assert bar.options["delay"] > 0.0  # quick fits show none


def test_progress_bar_is_closed_after_an_error(bars):
    x = columns_of_all_kinds(2000, 50)
    with pytest.raises(ValueError, match="column"):
        pk.fit(np.where(np.isnan(x), 1.0, -abs(x)), "box-cox", progress=True)

    def job(group):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        for_each_group(job, (10, 10), 1, progress=True)
    assert [bar.closed for bar in bars] == [True, True]


def test_no_bar_without_progress(bars):
    pk.fit(columns_of_all_kinds(50, 10))
    assert bars == []


def test_progress_with_the_real_tqdm(capsys):
    pytest.importorskip("tqdm")
    pk.fit(columns_of_all_kinds(50, 10), progress=True)
    assert capsys.readouterr().err == ""  # done before a bar would appear


def test_progress_without_tqdm_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match="progress=True needs tqdm: pip install tqdm"):
        pk.fit(columns_of_all_kinds(50, 10), progress=True)
