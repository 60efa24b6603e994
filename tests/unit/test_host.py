"""What the host says of itself, read from made-up system folders."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from engine import host
from engine.errors import UsageError


def write(folder: Path, files: dict[str, str]) -> host.Roots:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return host.Roots(folder / "proc", folder / "cg")


def test_affinity_alone_bounds_the_cores(tmp_path: Path) -> None:
    assert host.usable_cores(write(tmp_path, {}), affinity=2) == host.Usable(2, 2, None)


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", 8), ("250000 100000", 2), ("50000 100000", 1), ("rubbish", 8), ("1600000 100000", 8)],
)
def test_a_container_quota_bounds_the_cores(tmp_path: Path, quota: str, cores: int) -> None:
    there = write(tmp_path, {"proc/self/cgroup": "0::/\n", "cg/cpu.max": quota})
    assert host.usable_cores(there, affinity=8).cores == cores


def test_the_tightest_quota_on_the_way_up_counts(tmp_path: Path) -> None:
    there = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/pod/box\n",
            "cg/pod/box/cpu.max": "400000 100000",
            "cg/pod/cpu.max": "300000 100000",
            "cg/cpu.max": "max 100000",
        },
    )
    assert host.usable_cores(there, affinity=8) == host.Usable(3, 8, 3.0)


def test_a_path_that_only_the_host_sees_falls_back_to_the_mounted_top(tmp_path: Path) -> None:
    there = write(tmp_path, {"proc/self/cgroup": "0::/docker/../f00\n", "cg/cpu.max": "200000 100000"})
    assert host.usable_cores(there, affinity=8).by_quota == 2.0


@pytest.mark.parametrize("mount", ["cpu,cpuacct", "cpu"])
def test_the_older_control_groups_are_read_too(tmp_path: Path, mount: str) -> None:
    there = write(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/a\n3:cpu,cpuacct:/a\n0::/\n",
            f"cg/{mount}/a/cpu.cfs_quota_us": "150000\n",
            f"cg/{mount}/a/cpu.cfs_period_us": "100000\n",
            f"cg/{mount}/cpu.cfs_quota_us": "-1\n",
            f"cg/{mount}/cpu.cfs_period_us": "100000\n",
        },
    )
    assert host.usable_cores(there, affinity=4) == host.Usable(1, 4, 1.5)


def test_this_process_has_at_least_one_core_and_no_more_than_the_machine() -> None:
    assert 1 <= host.usable_cores().cores <= (os.cpu_count() or 1)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system binds no process to cores")
def test_a_process_bound_to_one_core_sees_one() -> None:
    program = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from engine.host import usable_cores; print(usable_cores().cores)"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1"


def test_memory_without_a_limit_is_the_machines(tmp_path: Path) -> None:
    there = write(tmp_path, {"proc/self/cgroup": "0::/\n", "cg/memory.max": "max\n"})
    assert host.memory(there, system=(1000, 400)) == host.Memory(1000, 400, False)


def test_a_container_limit_bounds_memory_and_cache_counts_as_free(tmp_path: Path) -> None:
    there = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/box\n",
            "cg/box/memory.max": "600\n",
            "cg/box/memory.current": "300\n",
            "cg/box/memory.stat": "anon 100\ninactive_file 150\n",
        },
    )
    assert host.memory(there, system=(1000, 900)) == host.Memory(600, 450, True)


def test_the_older_memory_limit_is_read_and_its_no_limit_number_is_none(tmp_path: Path) -> None:
    limited = {
        "proc/self/cgroup": "4:memory:/a\n",
        "cg/memory/a/memory.limit_in_bytes": "600\n",
        "cg/memory/a/memory.usage_in_bytes": "700\n",
        "cg/memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    assert host.memory(write(tmp_path, limited), system=(1000, 900)) == host.Memory(600, 0, True)


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        ("processor\t: 0\nmodel name\t:  Some CPU   @ 3GHz\nmodel name\t: other\n", "Some CPU @ 3GHz"),
        ("Hardware\t: BCM2711\n", "BCM2711"),
    ],
)
def test_the_processor_is_named(tmp_path: Path, cpuinfo: str, name: str) -> None:
    assert host.cpu_model(write(tmp_path, {"proc/cpuinfo": cpuinfo})) == name


def test_the_facts_hold_only_values_that_a_run_file_can_keep(tmp_path: Path) -> None:
    facts = host.host_facts(write(tmp_path, {}), environ={"MALLOC_ARENA_MAX": "2", "HOME": "/root"})
    assert msgspec.json.decode(msgspec.json.encode(facts)) == facts
    assert facts["allocator_environment"] == {"MALLOC_ARENA_MAX": "2"}
    assert facts["usable_cores"] >= 1
    assert facts["torch"]


def test_facts_come_without_torch_being_imported() -> None:
    program = "import sys; from engine.host import host_facts; host_facts(); print('torch' in sys.modules)"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_the_system_allocator_sets_nothing() -> None:
    assert host.allocator_environment("system", system="linux") == {}


def test_kept_memory_sets_the_two_variables() -> None:
    assert host.allocator_environment("keep", system="linux") == {
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": "8589934592",
    }


def test_kept_memory_is_refused_where_nothing_would_heed_it() -> None:
    with pytest.raises(UsageError, match="glibc"):
        host.allocator_environment("keep", system="darwin")


def test_a_library_is_preloaded_before_what_is_preloaded_already(tmp_path: Path) -> None:
    library = tmp_path / "libx.so"
    library.write_bytes(b"\x7fELF....")
    assert host.allocator_environment(str(library), environ={}, system="linux") == {
        "LD_PRELOAD": str(library)
    }
    joined = host.allocator_environment(str(library), environ={"LD_PRELOAD": "/a.so"}, system="linux")
    assert joined == {"LD_PRELOAD": f"{library}:/a.so"}


def test_what_the_loader_would_ignore_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("not a library")
    (tmp_path / "my lib.so").write_bytes(b"\x7fELF....")
    for bad in ("jemalloc", "", str(tmp_path), str(tmp_path / "text.so"), str(tmp_path / "my lib.so")):
        with pytest.raises(UsageError, match="--allocator"):
            host.allocator_environment(bad, environ={}, system="linux")
