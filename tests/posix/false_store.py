#!/usr/bin/env python3
"""Mounts something that claims to be a siltfs store, and answers what its MODE says.

    false_store.py STORE MOUNTPOINT MODE [STATISTICS]

Any user can do this: fusermount3 accepts every name of the source and every subtype. The program
prints "ready" once it serves. MODE: `silent` has no socket; the others answer on STORE/control.
"""

import array
import json
import os
import socket
import subprocess
import sys
import threading
import time


def mount(source, mountpoint):
    own, other = socket.socketpair()
    subprocess.run(["fusermount3", "-o", f"fsname={source},subtype=siltfs", "--", mountpoint],
                   env=dict(os.environ, _FUSE_COMMFD=str(other.fileno())),
                   pass_fds=[other.fileno()], check=True)
    _, ancillary, _, _ = own.recvmsg(4, socket.CMSG_SPACE(4))
    return array.array("i", ancillary[0][2])[0]  # the mount ends with this descriptor


def device_of(mountpoint):
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        return next(line.split()[2] for line in table if line.split()[4] == mountpoint)


def answer(connection, mode, identity, statistics):
    question = json.loads(connection.makefile().readline())["command"]
    result = {}
    if question == "identity":
        result = identity
    elif mode == "array":
        result = []
    elif mode == "types":
        result = {key: "x" for key in statistics}
    elif mode == "nested":
        levels = 4_000_000
        connection.sendall(b'{"ok":true,"result":' + b"[" * levels + b"]" * levels + b"}\n")
        return
    elif mode == "slow":
        while True:
            connection.sendall(b" ")
            time.sleep(0.05)
    connection.sendall(json.dumps({"ok": True, "result": result}).encode() + b"\n")


def serve(connection, *arguments):
    with connection:
        try:
            answer(connection, *arguments)
        except (OSError, ValueError):
            pass  # the client has left


def main(store, mountpoint, mode, statistics="{}"):
    descriptor = mount(store, mountpoint)
    if mode == "silent":
        print("ready", flush=True)
        time.sleep(3600)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(store + "/control")
    listener.listen(50)
    served = {"mountpoint": mountpoint, "device": device_of(mountpoint), "snapshot": ""}
    identity = {"pid": os.getpid(), "state": "mounted", "mountpoint": mountpoint, "mounts": [served]}
    print("ready", flush=True)
    while descriptor:
        connection, _ = listener.accept()
        threading.Thread(target=serve, daemon=True,
                         args=(connection, mode, identity, json.loads(statistics))).start()


main(*sys.argv[1:])
