#!/usr/bin/env python3
"""Two machines take a store in a bucket over from each other, again and again.

usage: bucket_fencing_campaign.py --siltfs PROGRAM --server S3_SERVER --work DIRECTORY
                                  [--rounds N] [--first N] [--share]

Each machine is a network namespace, with a cable to the service. In each round, the writer is
stopped (and goes on later), killed, killed and started again, cut off, given a slow cable, or left
alone, while the other machine takes over: with --take-over, or when the lease has ended. The load goes
on on both machines, until the first one notices.

After each round:
  - the new writer has every step that the old one has acknowledged with sync=bucket, whenever that was;
    with sync=local, every step that `siltfs stat` had reported as being in the bucket;
  - what was acknowledged before a surviving step began has survived, too (a prefix);
  - the old writer's store is refused, or it has turned read-only.
After some rounds, and at the end:
  - all changes of log objects that the service has seen are read: the log is one chain, each epoch has
    one writer, and no object was replaced;
  - fsck --data is clean.
"""

import argparse
import base64
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

from bucket_campaign import Machine, Poller, Problem, Service, Trace, Writer, check_acknowledged, check_prefix, run_command, surviving_step

ROUNDS_PER_STORE = 20
FAULTS = ["stop", "kill", "restart", "cut", "slow", "none"]
HEAD = struct.Struct("<8sHBBIQQQQqq16s")
KIND_OF_EPOCH = 1


class LogCheck:
    """Reads the changes of log objects in the order in which the service has made them."""

    def __init__(self):
        self.end = None        # (number, checksum, epoch) of the chain
        self.writers = {}      # by epoch
        self.there = set()
        self.highest_removed = 0
        self.objects = self.late = 0

    def put(self, key, head, checksum):
        if key in self.there:
            raise Problem(f"{key} was replaced")
        self.there.add(key)
        magic, _, kind, _, epoch, number, previous, _, _, _, _, writer = HEAD.unpack(head[:HEAD.size])
        if magic != b"siltlog1":
            raise Problem(f"{key} is no log object")
        self.objects += 1
        if self.writers.setdefault(epoch, writer) != writer:
            raise Problem(f"{key}: epoch {epoch} has two writers")
        if self.end is not None:
            last, last_checksum, last_epoch = self.end
            if number <= self.highest_removed:
                self.late += 1  # its writer was asleep, and is fenced
                return
            if (number, previous) != (last + 1, last_checksum):
                raise Problem(f"{key} has the predecessor {previous:x}, but {last:016x} has {last_checksum:x}")
            if epoch != last_epoch + (kind == KIND_OF_EPOCH):
                raise Problem(f"{key} of epoch {epoch} follows one of epoch {last_epoch}")
        self.end = (number, checksum, epoch)

    def delete(self, key):
        self.there.discard(key)
        self.highest_removed = max(self.highest_removed, int(key.rsplit("/", 1)[1], 16))


class Cable:
    """A network namespace with a link to the namespace of this program."""

    def __init__(self, number):
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self.link = f"cable{number}"
        self.address = f"10.9.{number}.1"
        self.enter = ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", "--"]
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        inner = f"inner{number}"
        self.ip("link", "add", self.link, "type", "veth", "peer", "name", inner, "netns", str(self.holder.pid))
        self.ip("addr", "add", f"{self.address}/24", "dev", self.link)
        self.ip("link", "set", self.link, "up")
        for arguments in (["addr", "add", f"10.9.{number}.2/24", "dev", inner], ["link", "set", inner, "up"], ["link", "set", "lo", "up"]):
            run_command([*self.enter, "ip", *arguments], check=True)
        self.inner = inner
        self.slow = False

    def ip(self, *arguments):
        run_command(["ip", *arguments], check=True)

    def cut(self):
        self.ip("link", "set", self.link, "down")

    def slow_down(self, rate):
        self.slow = True
        for enter, link in ([], self.link), (self.enter, self.inner):
            run_command([*enter, "tc", "qdisc", "replace", "dev", link, "root", "tbf", "rate", rate, "burst", "32k", "latency", "400ms"], check=True)

    def mend(self):
        self.ip("link", "set", self.link, "up")
        if self.slow:
            for enter, link in ([], self.link), (self.enter, self.inner):
                run_command([*enter, "tc", "qdisc", "del", "dev", link, "root"], check=True)
        self.slow = False


class Site:
    """A machine, its load and what the load has achieved."""

    def __init__(self, machine, cable):
        self.machine, self.cable = machine, cable
        self.sync = None
        self.writers, self.poller = [], None
        self.traces = []  # (trace, the step that no takeover may lose, sync)

    def start_load(self, name, choice):
        self.writers = [Writer(self.machine.mountpoint, f"{name}-{self.machine.name}-{i}", choice.randrange(1 << 60), choice.choice([0.3, 1.0]))
                        for i in range(choice.randrange(1, 4))]
        self.poller = Poller(self.machine, 0.2)
        for thread in [*self.writers, self.poller]:
            thread.start()

    def end_load(self, patience):
        """Waits until the writers have ended. False if one is still working."""
        limit = time.monotonic() + patience
        for thread in self.writers:
            thread.join(max(0, limit - time.monotonic()))
        if any(thread.is_alive() for thread in self.writers):
            return False
        self.poller.stop()
        self.poller.join(60)
        in_bucket = None if self.sync == "bucket" else self.poller.in_bucket_since()
        for writer in self.writers:
            trace = Trace.of(writer)
            self.traces.append((trace, trace.last_acked(in_bucket), self.sync))
        self.writers = []
        return True

    def stop_load(self):
        for writer in self.writers:
            writer.stop()
        if not self.end_load(120):
            raise Problem(f"a writer on {self.machine.name} does not end")


class Fencing:
    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(options.work)
        self.history = self.work / "history"
        self.service = Service(options.server, "--address", "0.0.0.0", "--history", str(self.history))
        self.sites = []
        for number in (1, 2):
            cable = Cable(number)
            endpoint = f"http://{cable.address}:{self.service.port}"
            self.sites.append(Site(Machine(options.siltfs, self.work, f"machine{number}", endpoint, cable.enter), cable))
        self.bucket = None
        self.old, self.new = self.sites
        self.directories = 0
        self.counts = {"rounds": 0, "steps": 0, "acknowledged": 0, "lost_steps": 0, "log_objects": 0, "late_objects": 0,
                       "by_lease": 0, "refused_again": 0, **{fault: 0 for fault in FAULTS}}

    def new_directory(self):
        self.directories += 1
        return self.work / "disk" / f"{self.directories}"

    def new_store(self, number, choice):
        self.bucket = f"s3://bucket/store-{number}"
        machine = self.new.machine
        directory = self.new_directory()
        machine.succeed("mkfs", directory, "--bucket", self.bucket, "--endpoint", machine.endpoint, "--cache", "256M")
        self.mount(self.new, directory, directory, choice)
        self.old, self.new = self.new, self.old
        self.old.start_load(f"r{number}-first", choice)

    def mount(self, site, source, directory, choice, take_over=True):
        site.sync = "bucket" if choice.random() < 0.75 else "local"
        return site.machine.mount(source, directory, f"sync={site.sync},bucket_timeout=5,commit={choice.choice([1, 5])}", take_over)

    def round(self, number):
        choice = random.Random(number)
        if self.bucket is None or number % ROUNDS_PER_STORE == 0:
            self.end_store()
            self.new_store(number, choice)
        if choice.random() < 0.2:
            self.service.control(random=number, rate=0.02)
        time.sleep(choice.random() * 1.5)
        fault = FAULTS[choice.randrange(len(FAULTS))]
        self.counts[fault] += 1
        restarted = self.harm(fault, choice, number)
        by_lease = fault in ("stop", "kill", "cut") and choice.random() < self.options.lease_rate
        self.take_over(choice, by_lease)
        self.new.start_load(f"r{number}", choice)
        time.sleep(choice.random())
        if restarted:
            self.join_restarted(*restarted, number, choice)
        self.heal(fault, choice)
        self.end_old(choice)
        self.service.control(heal=True)
        self.check_takeover()
        for writer in self.new.writers:
            if writer.error:
                raise Problem(f"{writer.name} on the new machine ends with {writer.error}")
        self.old, self.new = self.new, self.old
        self.counts["rounds"] += 1

    def harm(self, fault, choice, number):
        """Returns the thread and the result of a machine that starts again, if it does."""
        machine, cable = self.old.machine, self.old.cable
        if fault == "stop":
            os.kill(machine.daemon, signal.SIGSTOP)
        elif fault in ("kill", "restart"):
            machine.kill()
            if not self.old.end_load(60):
                raise Problem("a writer does not end after the daemon was killed")
        elif fault == "cut":
            cable.cut()
        elif fault == "slow":
            cable.slow_down(choice.choice(["4mbit", "20mbit"]))
        if fault != "restart":
            return None
        result = []
        site = self.old
        restart_choice = random.Random(f"{number} restart")
        thread = threading.Thread(target=lambda: result.append(self.mount(site, machine.directory, machine.directory, restart_choice)), daemon=True)
        thread.start()
        time.sleep(choice.random() * 0.5)
        return thread, result

    def join_restarted(self, thread, result, number, choice):
        """The old machine may have begun an epoch before the new one. Then it works until it is fenced."""
        thread.join(300)
        if not result:
            raise Problem("the mount of the machine that was killed does not end")
        if result[0][0] == 0:
            self.old.start_load(f"r{number}-again", choice)

    def take_over(self, choice, by_lease):
        machine = self.new.machine
        limit = time.monotonic() + 240
        while True:
            directory = self.new_directory()
            code, message = self.mount(self.new, self.bucket, directory, choice, take_over=not by_lease)
            if code == 0:
                break
            machine.kill()
            shutil.rmtree(directory, ignore_errors=True)
            if by_lease and code != 11:
                raise Problem(f"a mount while the lease lasts ends with {code}: {message}")
            if time.monotonic() > limit:
                raise Problem(f"the takeover ends with {code}: {message}")
            time.sleep(2 if by_lease else 0.2)
        self.counts["by_lease"] += by_lease

    def heal(self, fault, choice):
        site = self.old
        if fault in ("stop", "cut") and choice.random() < 0.3:
            site.machine.kill()
        elif fault == "stop":
            os.kill(site.machine.daemon, signal.SIGCONT)
        elif fault == "cut" and choice.random() < 0.3:
            time.sleep(6)  # requests end with errors before the cable is mended
        site.cable.mend()

    def end_old(self, choice):
        site = self.old
        if site.writers and not site.end_load(120):
            raise Problem(f"{site.machine.name} takes writes 120 s after another machine has taken over: "
                          f"{json.dumps(site.machine.stat()['bucket'])}")
        directory = site.machine.directory
        if choice.random() < 0.4:
            site.machine.run("umount", site.machine.mountpoint, timeout=120)
        site.machine.kill()
        if choice.random() < 0.3:
            code, _ = site.machine.mount(directory, directory, "bucket_timeout=5")
            if code == 0:
                raise Problem("the store of the fenced machine can be mounted")
            self.counts["refused_again"] += 1
            site.machine.kill()
        shutil.rmtree(directory)

    def check_takeover(self):
        site, mountpoint = self.old, self.new.machine.mountpoint
        steps = [surviving_step(mountpoint, trace) for trace, _, _ in site.traces]
        check_prefix([trace for trace, _, _ in site.traces], steps)
        for (trace, required, sync), step in zip(site.traces, steps):
            try:
                check_acknowledged(mountpoint, trace, required)
            except Problem as problem:
                raise Problem(f"{problem} (sync={sync})") from None
            self.counts["steps"] += len(trace.begun)
            self.counts["acknowledged"] += len(trace.acked)
            self.counts["lost_steps"] += len(trace.begun) - step
        site.traces = []
        for name in os.listdir(mountpoint):
            if not any(writer.name == name for writer in self.new.writers):
                shutil.rmtree(mountpoint / name, ignore_errors=True)

    def end_store(self):
        """Unmounts, checks the store and all changes of its log."""
        if self.bucket is None:
            return
        site = self.old
        site.stop_load()
        site.traces = []
        site.machine.succeed("umount", site.machine.mountpoint)
        site.machine.succeed("fsck", "-n", "--data", site.machine.directory, timeout=300)
        shutil.rmtree(site.machine.directory)
        self.check_log()
        self.bucket = None

    def check_log(self):
        prefix = self.bucket.removeprefix("s3://bucket/") + "/log/"
        check = LogCheck()
        with open(self.history, encoding="ascii") as history:
            for line in history:
                change = json.loads(line)
                if not change[1].startswith(prefix):
                    continue
                if change[0] == "PUT":
                    check.put(change[1], base64.b64decode(change[3]), int.from_bytes(base64.b64decode(change[4]), "little"))
                else:
                    check.delete(change[1])
        if check.objects == 0:
            raise Problem("the service has seen no log object")
        self.counts["log_objects"] += check.objects
        self.counts["late_objects"] += check.late

    def abandon(self):
        """After a failure: ends everything, so that another store can be made."""
        self.service.control(heal=True)
        for site in self.sites:
            if site.machine.daemon:
                site.machine.kill()
            site.cable.mend()
            for thread in [*site.writers, *([site.poller] if site.poller else [])]:
                thread.stop()
                thread.join(60)
            site.writers, site.traces = [], []
        self.bucket = None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--siltfs", required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--first", type=int, default=1, help="the number of the first round")
    parser.add_argument("--lease-rate", type=float, default=0.1, help="how often a takeover waits for the end of the lease")
    parser.add_argument("--share", action="store_true", help="a few rounds, unless SILTFS_TEST_SCALE is 10")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure, with another store")
    options = parser.parse_args()
    rounds = options.rounds
    if options.share and os.environ.get("SILTFS_TEST_SCALE") != "10":
        rounds = max(1, rounds // 100)
        options.lease_rate = 0
    campaign = Fencing(options)
    failures = 0
    begin = time.time()
    for number in range(options.first, options.first + rounds):
        try:
            campaign.round(number)
            if number == options.first + rounds - 1:
                campaign.end_store()
        except Problem as problem:
            failures += 1
            print(f"FAILED: round {number} in {campaign.bucket}: {problem}", flush=True)
            if not options.keep_going:
                break
            campaign.abandon()
        if number % 10 == 0:
            print(f"{time.time() - begin:.0f} s, round {number}, {failures} failures: {campaign.counts}", flush=True)
    campaign.abandon()
    print(f"{failures} failures in {time.time() - begin:.0f} s: {campaign.counts}")
    sys.exit(failures != 0)


main()
