"""Facts about this machine."""

from __future__ import annotations

import os
import shutil
import subprocess

import aiohttp
import pytest

from minimsg.machine import load_average, machine, versions


def test_memory_is_what_the_kernel_says_in_its_other_place() -> None:
    assert machine().memory_bytes == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.skipif(shutil.which("nproc") is None, reason="asks the nproc command")
def test_cores_are_those_that_this_process_may_use() -> None:
    # nproc heeds OMP_NUM_THREADS, which says how many threads to use, not how many there are.
    env = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    done = subprocess.run(["nproc"], env=env, capture_output=True, text=True, check=True)
    assert machine().cores == int(done.stdout)


def test_the_load_average_is_the_systems() -> None:
    load = load_average()
    assert load is not None
    assert abs(load - os.getloadavg()[0]) < 1


def test_a_package_that_is_absent_has_no_version() -> None:
    assert versions(["aiohttp", "no-such-package"]) == {
        "aiohttp": aiohttp.__version__,
        "no-such-package": None,
    }
