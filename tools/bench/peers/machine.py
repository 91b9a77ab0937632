"""Describes the machine of the measurements."""
import os
import re

from peers import io_uring, mounts


def describe(scratch):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"^model name\s*: (.*)$", file.read(), re.MULTILINE)
    with open("/proc/meminfo", encoding="utf-8") as file:
        total = int(re.search(r"^MemTotal:\s*(\d+) kB", file.read(), re.MULTILINE).group(1)) * 1024
    return {
        "cpu": model.group(1) if model else os.uname().machine,
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": total,
        "kernel": os.uname().release,
        "fuse_over_io_uring": io_uring.not_offered() is None,
        "scratch_file_system": mounts.kind_of(scratch),
        "load_at_start": os.getloadavg()[0],
    }


def in_words(machine):
    transport = {None: "", True: " with FUSE over io_uring", False: " without FUSE over io_uring"}[
        machine.get("fuse_over_io_uring")]
    return (f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_bytes'] / (1 << 30):.0f} GiB, Linux "
            f"{machine['kernel']}{transport}, stores on {machine['scratch_file_system']}, load "
            f"{machine['load_at_start']:.1f} when it started")
