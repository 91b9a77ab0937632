"""The workload fio: large and small transfers, in order and at random, through the mount.

Half of the data is compressible and none of it repeats. The time of a write includes an fsync at
its end and the unmount. Before a read all caches are dropped, also those of the file system below
the mount.
"""
import json
import os
import shutil

from peers.measure import CommandFailed, Step

# (name, fio's rw, block size, file). The sequential writes make the files for the other jobs.
JOBS = (
    ("1 MiB sequential write", "write", "1m", "large"),
    ("1 MiB sequential read", "read", "1m", "large"),
    ("1 MiB random write", "randwrite", "1m", "large"),
    ("1 MiB random read", "randread", "1m", "large"),
    ("4 KiB sequential write", "write", "4k", "small"),
    ("4 KiB sequential read", "read", "4k", "small"),
    ("4 KiB random write", "randwrite", "4k", "small"),
    ("4 KiB random read", "randread", "4k", "small"),
)


def unusable():
    return None if shutil.which("fio") else "fio is not installed"


def run(system, sequential_bytes, random_bytes, surroundings):
    with Step(surroundings) as step:
        system.create(step)
    return {job[0]: _measure(system, job, sequential_bytes, random_bytes, surroundings) for job in JOBS}


def _command(place, job, sequential_bytes, random_bytes):
    _, pattern, block, file = job
    moved = random_bytes if pattern.startswith("rand") else sequential_bytes
    command = ["fio", "--name=job", f"--filename={place}/{file}", f"--rw={pattern}", f"--bs={block}",
               f"--size={sequential_bytes}", f"--io_size={min(moved, sequential_bytes)}", "--ioengine=psync",
               "--fallocate=none", "--randseed=1", "--output-format=json"]
    if pattern.endswith("write"):
        command += ["--end_fsync=1", "--refill_buffers", "--buffer_compress_percentage=50", "--overwrite=0"]
    return command


def _measure(system, job, sequential_bytes, random_bytes, surroundings):
    reads = job[1].endswith("read")
    if reads:
        surroundings.drop_caches()
        system.warm_up()
    surroundings.settle()
    surroundings.touch_memory()
    output = os.path.join(surroundings.directory, "fio.json")
    with Step(surroundings, system.memory_limit) as step:
        with system.mounted(step) as place:
            with step.timed("work"):
                step.run(_command(place, job, sequential_bytes, random_bytes), stdout=output)
        figures = step.figures()
    with open(output, encoding="utf-8") as file:
        found = json.load(file)["jobs"][0]["read" if reads else "write"]
    if found["total_ios"] == 0:
        raise CommandFailed(f"{system.name}: fio did nothing")
    seconds = found["runtime"] / 1000 + (0 if reads else figures["parts"]["unmount"])
    return {**figures, "counted_seconds": seconds, "bytes": found["io_bytes"], "operations": found["total_ios"],
            "bytes_per_s": found["io_bytes"] / seconds, "bytes_per_s_without_unmount": found["bw_bytes"]}
