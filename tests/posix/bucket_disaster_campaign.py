#!/usr/bin/env python3
"""A machine is lost with its disk at random points under load, again and again.

usage: bucket_disaster_campaign.py --siltfs PROGRAM --server S3_SERVER --work DIRECTORY
                                   [--rounds N] [--first N] [--sync local|bucket|both] [--share]

Each round mounts the bucket on an empty machine, checks the restored state, and lets several writers
work, beside snapshots, garbage collection and the like. At a random moment the daemon is killed and
the whole directory of the store is removed. In some rounds the moment is in the restore or in an
unmount; in some the machine has crashed and recovered before; in some the service has faults.

After each loss:
  - the bucket mounts on an empty machine;
  - each writer's directory is in a state between two of its steps, and what was acknowledged before a
    surviving step began has survived (a prefix);
  - everything is there that was acknowledged before the time that `siltfs stat` had reported as the
    one up to which the bucket has everything; with sync=bucket, everything that was acknowledged;
  - directories of earlier rounds are unchanged;
  - after an unmount, `fsck --data` is clean.

Everything but the speed of the threads follows from the round's number.
"""

import argparse
import os
import pathlib
import random
import shutil
import subprocess
import sys
import threading
import time

from bucket_campaign import Machine, Poller, Problem, Service, Trace, Writer, check_acknowledged, check_prefix, surviving_step

ROUNDS_PER_STORE = 12


class Disaster:
    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(options.work)
        self.service = Service(options.server)
        endpoint = f"http://127.0.0.1:{self.service.port}"
        self.machine = Machine(options.siltfs, self.work, "machine", endpoint)
        self.bucket = None
        self.settled = []       # (trace, step) of earlier rounds
        self.shipped = 0
        self.counts = {"rounds": 0, "steps": 0, "acknowledged": 0, "lost_steps": 0, "samples": 0,
                       "samples_behind": 0, "killed_in_restore": 0, "local_crashes": 0, "unmounts": 0, "faulty": 0}

    def directory(self, number, name):
        return self.work / "disk" / f"{name}-{number}"

    def new_store(self, number):
        self.bucket = f"s3://bucket/store-{number}"
        directory = self.directory(number, "made")
        self.machine.succeed("mkfs", directory, "--bucket", self.bucket, "--endpoint", self.machine.endpoint, "--cache", "256M")
        code, message = self.machine.mount(directory, directory, "sync=local")
        if code != 0:
            raise Problem(f"the first mount ends with {code}: {message}")
        self.machine.succeed("umount", self.machine.mountpoint)
        shutil.rmtree(directory)
        self.settled, self.shipped = [], 0

    def mount_again(self, source, directory, options):
        """With faults of the service, a mount may fail with a message. Then it is repeated."""
        for _ in range(5):
            code, message = self.machine.mount(source, directory, options)
            if code == 0:
                return
            self.machine.kill()
        raise Problem(f"the mount of {source} ends with {code}: {message}")

    def kill_in_restore(self, directory, choice):
        arguments = self.machine.mount_arguments(self.bucket, directory, "sync=local", True)
        with subprocess.Popen(self.machine.command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as mount:
            time.sleep(choice.random() * 0.8)
            self.machine.kill()
            mount.kill()
        if choice.random() < 0.5:
            shutil.rmtree(directory, ignore_errors=True)
        self.counts["killed_in_restore"] += 1

    def maintain(self, number, choice, stop):
        """Commands beside the writers. Only their effect on the store matters."""
        snapshots = 0
        while not stop.wait(choice.random() * 0.6):
            kind = choice.randrange(4)
            mountpoint = self.machine.mountpoint
            try:
                if kind == 0:
                    snapshots += 1
                    self.machine.run("snapshot", "create", mountpoint, f"s{number}-{snapshots}")
                elif kind == 1:
                    self.machine.run("gc", mountpoint)
                elif kind == 2:
                    self.machine.run("settle", mountpoint)
                elif snapshots:
                    self.machine.run("snapshot", "delete", mountpoint, f"s{number}-{snapshots}")
            except (OSError, subprocess.TimeoutExpired):
                return

    def load(self, number, part, seconds, choice):
        """Returns the traces of the writers and the poller, after the daemon was killed."""
        rate = choice.choice([0.1, 0.5, 1.0])
        writers = [Writer(self.machine.mountpoint, f"r{number}-{part}-{i}", choice.randrange(1 << 60), rate)
                   for i in range(choice.randrange(1, 4))]
        poller = Poller(self.machine)
        stop = threading.Event()
        maintenance = threading.Thread(target=self.maintain, args=(number, choice, stop), daemon=True)
        for thread in [*writers, poller, maintenance]:
            thread.start()
        ends_by_unmount = part == "last" and choice.random() < 0.12
        time.sleep(seconds)
        if ends_by_unmount:
            self.unmount_while_working(writers, stop)
        self.machine.kill()
        stop.set()
        for thread in [*writers, poller]:
            thread.stop()
        for thread in [*writers, poller, maintenance]:
            thread.join(60)
            if thread.is_alive():
                raise Problem(f"a thread does not end after the daemon was killed: {thread.name}")
        return [Trace.of(writer) for writer in writers], poller

    def unmount_while_working(self, writers, stop):
        """The machine is lost at the latest after an unmount."""
        self.counts["unmounts"] += 1
        stop.set()
        for writer in writers:
            writer.stop()
        for writer in writers:
            writer.join(60)
        with subprocess.Popen(self.machine.command("umount", self.machine.mountpoint), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as unmount:
            time.sleep(random.random() * 0.5)
            self.machine.kill()
            unmount.wait(60)

    def round(self, number):
        choice = random.Random(number)
        sync = self.options.sync if self.options.sync != "both" else ["local", "bucket"][number % 2]
        if self.bucket is None or number % ROUNDS_PER_STORE == 0:
            self.new_store(number)
        faulty = choice.random() < 0.3
        self.counts["faulty"] += faulty
        if choice.random() < 0.2:
            self.kill_in_restore(self.directory(number, "killed"), choice)
        directory = self.directory(number, "lost")
        options = f"sync={sync},bucket_timeout=20,commit={choice.choice([1, 5])}"
        self.mount_again(self.bucket, directory, options)
        if faulty:
            self.service.control(random=number, rate=0.03)
        self.remove_old_directories()
        traces, poller, reached = [], None, []
        if choice.random() < 0.25:
            traces, poller = self.load(number, "first", choice.random() * 2, choice)
            reached = self.crash_locally(directory, options, traces)
        later, last_poller = self.load(number, "last", choice.random() * 4, choice)
        if faulty:
            self.service.control(heal=True)
        shutil.rmtree(directory)
        self.check_restored(number, sync, traces + later, [poller, last_poller], reached)

    def crash_locally(self, directory, options, traces):
        """The daemon was killed, but the disk is kept. Everything acknowledged must be there."""
        self.counts["local_crashes"] += 1
        self.mount_again(directory, directory, options)
        steps = [surviving_step(self.machine.mountpoint, trace) for trace in traces]
        for trace in traces:
            check_acknowledged(self.machine.mountpoint, trace, trace.last_acked())
        check_prefix(traces, steps)
        return [(time.time(), trace, step) for trace, step in zip(traces, steps)]

    def check_restored(self, number, sync, traces, pollers, reached):
        directory = self.directory(number, "checked")
        self.mount_again(self.bucket, directory, "sync=local,bucket_timeout=20")
        mountpoint = self.machine.mountpoint
        steps = [surviving_step(mountpoint, trace) for trace in traces]
        check_prefix(traces, steps)
        in_bucket = max(poller.in_bucket_since() for poller in pollers if poller)
        for trace, step in zip(traces, steps):
            check_acknowledged(mountpoint, trace, trace.last_acked(None if sync == "bucket" else in_bucket))
            self.counts["steps"] += len(trace.begun)
            self.counts["acknowledged"] += len(trace.acked)
            self.counts["lost_steps"] += len(trace.begun) - step
        for at, trace, step in reached:
            survived = steps[traces.index(trace)]
            if survived > step:
                raise Problem(f"{trace.name} has step {survived}, but had {step} after a local crash")
            if at <= in_bucket and survived < step:
                raise Problem(f"{trace.name} has step {survived}, but stat said that the bucket has {step}")
        for trace, step in self.settled:
            if surviving_step(mountpoint, trace) != step:
                raise Problem(f"{trace.name} of an earlier round has changed")
        self.settled += zip(traces, steps)
        newest = self.machine.stat()["bucket"]["newest_commit"]
        self.shipped = max([self.shipped, *(poller.shipped() for poller in pollers if poller)])
        if newest < self.shipped:
            raise Problem(f"the newest commit is {newest}, but stat said that the bucket has {self.shipped}")
        for poller in filter(None, pollers):
            self.counts["samples"] += len(poller.samples)
            self.counts["samples_behind"] += sum(bucket["commits_behind"] > 0 for _, bucket in poller.samples)
        self.machine.succeed("umount", mountpoint)
        self.machine.succeed("fsck", "-n", "--data", directory, timeout=300)
        shutil.rmtree(directory)
        self.counts["rounds"] += 1

    def remove_old_directories(self):
        while len(self.settled) > 8:
            trace, _ = self.settled.pop(0)
            shutil.rmtree(self.machine.mountpoint / trace.name, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--siltfs", required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--first", type=int, default=1, help="the number of the first round")
    parser.add_argument("--sync", choices=["local", "bucket", "both"], default="both")
    parser.add_argument("--share", action="store_true", help="a few rounds, unless SILTFS_TEST_SCALE is 10")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure, with another store")
    options = parser.parse_args()
    rounds = options.rounds
    if options.share and os.environ.get("SILTFS_TEST_SCALE") != "10":
        rounds = max(1, rounds // 150)
    campaign = Disaster(options)
    failures = 0
    begin = time.time()
    for number in range(options.first, options.first + rounds):
        try:
            campaign.round(number)
        except Problem as problem:
            failures += 1
            print(f"FAILED: round {number} in {campaign.bucket}: {problem}", flush=True)
            if not options.keep_going:
                break
            campaign.service.control(heal=True)
            campaign.machine.kill()
            campaign.bucket = None
        if number % 10 == 0:
            print(f"{time.time() - begin:.0f} s, round {number}, {failures} failures: {campaign.counts}", flush=True)
    campaign.machine.kill()
    print(f"{failures} failures in {time.time() - begin:.0f} s, sync={options.sync}: {campaign.counts}")
    sys.exit(failures != 0)


main()
