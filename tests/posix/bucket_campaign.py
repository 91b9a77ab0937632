"""What the campaigns for stores in a bucket share: the service, machines with a mounted store, and a
load whose acknowledged steps are remembered.

A load has writers. Each writer makes numbered steps in a directory of its own, and each step changes
several files. So a directory tells which step was the last one, and whether all steps before it are
there completely. A writer remembers when each step began, and which steps an fsync has acknowledged.
"""

import dataclasses
import functools
import json
import multiprocessing
import os
import pathlib
import random
import signal
import struct
import subprocess
import threading
import time

POOL = random.Random(1).randbytes(8 << 20)  # contents that many files share
KEPT_FILES = 12
BLOCKS = 64
BLOCK = 4096
STAMP = struct.Struct("<QQ")


class Problem(Exception):
    """A promise of siltfs was broken, or the campaign cannot go on."""


@functools.cache
def command_workers():
    """Processes that run commands. They must be made before a file is opened on a mount: a child of this
    process would close its copies of such files, and to close a file is a request to the daemon, which the
    campaign may have stopped."""
    return multiprocessing.get_context("fork").Pool(8)


def run_command(arguments, **options):
    return command_workers().apply(subprocess.run, (list(arguments),), options)


class Service:
    """A service with the protocol of S3 (tests/support/s3_server.py)."""

    def __init__(self, server, *arguments):
        self.process = subprocess.Popen(["python3", server, *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.port = json.loads(self.process.stdout.readline())["port"]

    def control(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


class Machine:
    """Mounts stores at one mountpoint, perhaps in a network namespace of its own."""

    def __init__(self, siltfs, work, name, endpoint, prefix=()):
        command_workers()
        self.siltfs, self.work, self.endpoint, self.prefix = siltfs, pathlib.Path(work), endpoint, list(prefix)
        self.name = name
        self.mountpoint = self.work / f"mnt-{name}"
        self.mountpoint.mkdir(exist_ok=True)
        self.log = self.work / f"log-{name}"
        self.directory = None
        self.daemon = None

    def command(self, *arguments):
        return [*self.prefix, self.siltfs, *map(str, arguments)]

    def run(self, *arguments, timeout=120):
        return run_command(self.command(*arguments), capture_output=True, text=True, timeout=timeout, check=False)

    def succeed(self, *arguments, timeout=120):
        done = self.run(*arguments, timeout=timeout)
        if done.returncode != 0:
            raise Problem(f"{self.name}: siltfs {' '.join(map(str, arguments))} ends with {done.returncode}: {done.stderr}{done.stdout}")
        return done.stdout

    def mount_arguments(self, source, directory, options, take_over):
        arguments = ["mount", source, self.mountpoint, "-o", f"log={self.log},{options}"]
        if str(source).startswith("s3://"):
            arguments += ["--cache", directory, "--endpoint", self.endpoint]
        return arguments + (["--take-over"] if take_over else [])

    def mount(self, source, directory, options, take_over=True):
        """Returns the exit code and the message. `source` is the bucket, or the directory."""
        self.directory = directory
        done = self.run(*self.mount_arguments(source, directory, options, take_over), timeout=300)
        if done.returncode == 0:
            self.daemon = self.stat()["pid"]
        return done.returncode, done.stderr

    def stat(self):
        return json.loads(self.succeed("stat", self.mountpoint, "--json"))

    def kill(self):
        """Ends the daemon as a crash would, and whatever works on the store's directory."""
        while processes := list(self.processes()):
            for process in processes:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)
        self.daemon = None
        run_command(["umount", "--lazy", str(self.mountpoint)], capture_output=True, check=False)

    def processes(self):
        """Processes of siltfs that name this machine's mountpoint, and its daemon."""
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            ours = os.fsencode(self.mountpoint) in arguments and os.fsencode(self.siltfs) in arguments
            if state != "Z" and (ours or int(entry.name) == self.daemon):
                yield int(entry.name)


def step_content(seed, step):
    """The content of the file that a step makes."""
    choice = random.Random(f"{seed} {step}")
    kind = choice.random()
    size = choice.randrange(16, 8000 if kind < 0.55 else 100_000 if kind < 0.85 else 1 << 20 if kind < 0.98 else 8 << 20)
    if choice.random() < 0.5:
        start = choice.randrange(len(POOL) - size + 1)
        body = POOL[start:start + size]
    else:
        body = choice.randbytes(size)
    return STAMP.pack(seed, step) + body


def block_content(seed, step):
    return STAMP.pack(seed, step) * (BLOCK // STAMP.size)


class Writer(threading.Thread):
    """Makes steps in a new directory until `stop` is called or a call fails."""

    def __init__(self, mountpoint, name, seed, sync_rate):
        super().__init__(daemon=True)
        self.name, self.seed, self.sync_rate = name, seed, sync_rate
        self.directory = pathlib.Path(mountpoint) / name
        self.begun = []     # when step i + 1 began
        self.acked = []     # (time, step): all steps up to this one were acknowledged
        self.error = None
        self.stopping = False

    def run(self):
        try:
            os.mkdir(self.directory)
            big = os.open(self.directory / "big", os.O_RDWR | os.O_CREAT)
            try:
                choice = random.Random(self.seed)
                while not self.stopping:
                    self.begun.append(time.time())
                    self.make_step(len(self.begun), big)
                    if choice.random() < self.sync_rate:
                        os.fsync(big)
                        self.acked.append((time.time(), len(self.begun)))
            finally:
                os.close(big)
        except OSError as error:
            self.error = error

    def make_step(self, step, big):
        with open(self.directory / "next", "wb") as file:
            file.write(step_content(self.seed, step))
        os.rename(self.directory / "next", self.directory / f"{step:06}")
        if step > KEPT_FILES:
            os.unlink(self.directory / f"{step - KEPT_FILES:06}")
        os.pwrite(big, block_content(self.seed, step), step % BLOCKS * BLOCK)

    def stop(self):
        self.stopping = True

    def last_acked(self, before=None):
        return max((step for at, step in self.acked if before is None or at <= before), default=0)


@dataclasses.dataclass
class Trace:
    """What is known about a directory after its writer has ended."""
    name: str
    seed: int
    begun: list
    acked: list

    last_acked = Writer.last_acked

    @staticmethod
    def of(writer):
        return Trace(writer.name, writer.seed, list(writer.begun), list(writer.acked))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def surviving_step(mountpoint, trace):
    """The last step that the directory has. Raises Problem if it is in no state between two steps."""
    directory = pathlib.Path(mountpoint) / trace.name
    if not directory.exists():
        return 0
    names = set(os.listdir(directory))
    steps = {int(name) for name in names if name.isdigit()}
    last = max(steps, default=0)
    wrong = f"{trace.name}, step {last} of {len(trace.begun)}"
    complete = set(range(max(1, last - KEPT_FILES + 1), last + 1))
    late = {last - KEPT_FILES} - {0} if last > KEPT_FILES else set()
    if not (complete <= steps <= complete | late) or names - {"big", "next"} != {f"{step:06}" for step in steps}:
        raise Problem(f"{wrong}: other files: {sorted(names)}")
    for step in steps:
        if read(directory / f"{step:06}") != step_content(trace.seed, step):
            raise Problem(f"{wrong}: the content of step {step} differs")
    if "big" not in names:
        if last:
            raise Problem(f"{wrong}: big is missing")
        return 0
    check_blocks(read(directory / "big"), trace, last, wrong)
    return last


def check_blocks(big, trace, last, wrong):
    """The kernel may keep the blocks of the last steps until the next fsync."""
    synced = max((step for _, step in trace.acked if step < last), default=0)
    for block in range(BLOCKS):
        newest = last - (last - block) % BLOCKS
        oldest = synced - (synced - block) % BLOCKS
        legal = {max(step, 0) for step in range(oldest, newest + 1, BLOCKS)}
        content = big[block * BLOCK:(block + 1) * BLOCK].ljust(BLOCK, b"\0")
        if content not in [block_content(trace.seed, step) if step else bytes(BLOCK) for step in legal]:
            raise Problem(f"{wrong}: block {block} has {STAMP.unpack(content[:16])} instead of {legal}")


def check_acknowledged(mountpoint, trace, step):
    """Everything up to this step must be there."""
    if step == 0:
        return
    survived = surviving_step(mountpoint, trace)
    if survived < step:
        raise Problem(f"{trace.name} has step {survived} of {len(trace.begun)}, but must have {step}")
    if survived == step:
        block = step % BLOCKS * BLOCK
        if read(pathlib.Path(mountpoint) / trace.name / "big")[block:block + BLOCK] != block_content(trace.seed, step):
            raise Problem(f"{trace.name}: the last change of step {step} is missing, which was acknowledged")


def check_prefix(traces, steps):
    """What was acknowledged before a surviving step began has survived, too."""
    for trace, step in zip(traces, steps):
        if step == 0:
            continue
        began = trace.begun[step - 1]
        for other, survived in zip(traces, steps):
            if other.last_acked(began) > survived:
                raise Problem(f"{trace.name} has step {step}, but {other.name} lacks step {other.last_acked(began)}, which was acknowledged before")


class Poller(threading.Thread):
    """Asks `siltfs stat` how far the bucket is behind, again and again."""

    def __init__(self, machine, pause=0.1):
        super().__init__(daemon=True)
        self.machine, self.pause = machine, pause
        self.samples = []  # (time before the question, keys of "bucket")
        self.stopping = False

    def run(self):
        while not self.stopping:
            before = time.time()
            try:
                done = self.machine.run("stat", self.machine.mountpoint, "--json")
                bucket = json.loads(done.stdout)["bucket"] if done.returncode == 0 else {}
            except (OSError, ValueError, subprocess.TimeoutExpired):
                bucket = {}
            if "commits_behind" in bucket:
                self.samples.append((before, bucket))
            time.sleep(self.pause)

    def stop(self):
        self.stopping = True

    def in_bucket_since(self):
        """Everything that was acknowledged before this time is in the bucket, as `stat` has said."""
        return max((before - (bucket["commit_seconds_behind"] if bucket["commits_behind"] else 0)
                    for before, bucket in self.samples), default=0)

    def shipped(self):
        return max((bucket["shipped_commit"] for _, bucket in self.samples), default=0)
