#!/bin/bash
# `siltfs metrics --listen`: the metrics of all mounted stores over HTTP, and clients that misbehave.
#
#   exporter_test.sh SILTFS
set -euo pipefail

siltfs=$1
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

other_store=$disk/other
other_mnt=$work/other
mkdir "$other_mnt"

# Starts an exporter, and sets `exporter` to its process and `address` to where it listens.
start_exporter() { # ADDRESS
  : >"$work/exporter" # the exporter before may have written there
  "$siltfs" metrics --listen "$1" 2>"$work/exporter" &
  exporter=$!
  local i
  for ((i = 0; i < 600; ++i)); do
    ! grep -q "are served at" "$work/exporter" || break
    kill -0 "$exporter" 2>/dev/null || fail "the exporter has ended: $(cat "$work/exporter")"
    sleep 0.1
  done
  address=$(sed -n 's|.* are served at http://\(.*\)/metrics$|\1|p' "$work/exporter")
}
stop_exporter() {
  kill -TERM "$exporter"
  local code=0
  wait "$exporter" || code=$?
  ((code == 0)) || fail "the exporter ends with $code: $(cat "$work/exporter")"
}
fails_with() { # CODE TEXT ARGUMENT...
  local code=0 wanted=$1 text=$2
  shift 2
  timeout 60 "$siltfs" metrics "$@" >"$work/out" 2>"$work/err" || code=$?
  ((code == wanted)) || fail "metrics $* ends with $code: $(cat "$work/err")"
  grep -qF -- "$text" "$work/err" || fail "metrics $* says: $(cat "$work/err")"
  (($(wc -l <"$work/err") == 1)) || fail "not one sentence: $(cat "$work/err")"
}

step "wrong addresses"
for wrong in 9851 localhost example.org:80 127.0.0.1:70000 127.0.0.1: ::1:80 unix:relative 1.2.3.4:x; do
  fails_with 2 "is no address to listen on" --listen "$wrong"
done
fails_with 2 "name the store" # neither a store nor an address
fails_with 2 excludes --listen 127.0.0.1:0 "$store"

step "two mounted stores"
make_and_mount
"$siltfs" mkfs "$other_store"
"$siltfs" mount "$other_store" "$other_mnt" -o allow_other
noise 3M one >"$mnt/one"
start_exporter 127.0.0.1:0

python3 - "$address" "$store" "$other_store" <<'PYTHON' || fail "the answers are wrong"
import http.client, socket, sys, threading

address, store, other = sys.argv[1:]
host, port = address.rsplit(":", 1)


def ask(method, path, headers={}, body=None):
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.request(method, path, body=body, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


accept = {"Accept": "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5"}
answer, text = ask("GET", "/metrics", accept)
assert answer.status == 200, answer.status
assert answer.getheader("Content-Type") == "application/openmetrics-text; version=1.0.0; charset=utf-8"
assert text.endswith("\n# EOF\n")
for name in (store, other):
    assert f'siltfs_up{{store="{name}"}} 1\n' in text, text
    assert f'siltfs_mounted{{store="{name}"}} 1\n' in text, text
assert f'siltfs_files{{store="{store}"}} 1\n' in text and f'siltfs_files{{store="{other}"}} 0\n' in text
assert text.count("# TYPE siltfs_files ") == 1
try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
    assert len(list(parse(text))) > 20
except ImportError:
    print("without prometheus_client")

answer, plain = ask("GET", "/metrics?x=1")
assert "# TYPE siltfs_commits_total counter\n" in plain and "# TYPE siltfs_commits counter\n" in text
assert answer.getheader("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
assert answer.getheader("Cache-Control") == "no-store"
answer, text = ask("HEAD", "/metrics", accept)
assert answer.status == 200 and text == "" and int(answer.getheader("Content-Length")) > 1000
answer, text = ask("GET", "/")
assert answer.status == 200 and "/metrics" in text
assert ask("GET", "/etc/passwd")[0].status == 404
assert ask("GET", "/metrics/../metrics")[0].status == 404
for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"):
    answer, _ = ask(method, "/metrics", body=b"x" if method in ("POST", "PUT") else None)
    assert answer.status == 405 and answer.getheader("Allow") == "GET, HEAD", (method, answer.status)
assert ask("GET", "/metrics", body=b"body")[0].status == 400


# Sends bytes, and returns the status of the answer; 0 if the connection was only closed.
def send(data):
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        try:
            connection.sendall(data)
            answer = connection.makefile("rb").readline()
        except (ConnectionError, BrokenPipeError):
            return 0
    return int(answer.split()[1]) if answer else 0


line = b"GET /metrics HTTP/1.1\r\nHost: x\r\n"
assert send(line + b"\r\n") == 200
assert send(line + b"X: " + b"y" * 100_000 + b"\r\n\r\n") in (0, 413, 431)
assert send(line + b"".join(b"X%d: y\r\n" % i for i in range(100_000)) + b"\r\n") in (0, 413, 431)
assert send(b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n") in (0, 400, 413, 414, 431)
assert send(b"\x00" * 1000 + b"\r\n\r\n") in (0, 400, 405)
assert send(line + b"Transfer-Encoding: chunked\r\n\r\n" + b"ffffff\r\n") == 400
assert send(line + b"Content-Length: 99999999999\r\n\r\n") in (0, 400, 413)

# Silent clients do not keep others out for longer than they may be silent.
silent = []
for _ in range(200):
    try:
        silent.append(socket.create_connection((host, int(port)), timeout=5))
        silent[-1].sendall(b"GET /metr")
    except OSError:
        break
assert len(silent) >= 32, len(silent)
for connection in silent:
    connection.close()
answer, text = ask("GET", "/metrics")
assert answer.status == 200, "after silent clients"

# Clients that send a byte from time to time do not keep others out either.
slow = []
for _ in range(40):
    slow.append(socket.create_connection((host, int(port)), timeout=60))
    slow[-1].sendall(b"GET /metrics HTTP/1.1\r\nX: ")
for _ in range(5):
    for connection in list(slow):
        try:
            connection.sendall(b"y")
        except OSError:
            slow.remove(connection)
    assert ask("GET", "/metrics")[0].status == 200, "among slow clients"
assert len(slow) < 40, "no slow client was ended"
for connection in slow:
    connection.close()

# Many clients at the same time are all answered.
wrong = []
def read():
    for _ in range(5):
        if ask("GET", "/metrics", accept)[0].status != 200:
            wrong.append(1)
threads = [threading.Thread(target=read) for _ in range(10)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong
PYTHON

get() { python3 -c 'import sys, urllib.request; print(urllib.request.urlopen("http://" + sys.argv[1] + "/metrics", timeout=60).read().decode(), end="")' "$address"; }
# A text is kept for a second, so a change is awaited.
await_line() { # TEXT
  local i
  for ((i = 0; i < 300; ++i)); do
    get >"$work/text"
    ! grep -qxF -- "$1" "$work/text" || return 0
    sleep 0.2
  done
  fail "no line \"$1\": $(cat "$work/text")"
}

await_gone() { # STORE
  local i
  for ((i = 0; i < 300; ++i)); do
    get >"$work/text"
    grep -qF -- "{store=\"$1\"" "$work/text" || return 0
    sleep 0.2
  done
  fail "an unmounted store is there: $(cat "$work/text")"
}

step "a daemon that does not answer, and one that was killed"
pid=$("$siltfs" stat --json "$other_mnt" | jq .pid)
kill -STOP "$pid"
await_line "siltfs_up{store=\"$other_store\"} 0"
grep -qxF "siltfs_up{store=\"$store\"} 1" "$work/text" || fail "one store hides another: $(cat "$work/text")"
! grep -qF "siltfs_files{store=\"$other_store\"" "$work/text" || fail "$(cat "$work/text")"
kill -CONT "$pid"
await_line "siltfs_up{store=\"$other_store\"} 1"
kill -KILL "$pid"
await_line "siltfs_up{store=\"$other_store\"} 0"
"$siltfs" umount "$other_mnt"

step "stores that are unmounted and mounted"
await_gone "$other_store"
grep -qxF "siltfs_up{store=\"$store\"} 1" "$work/text" || fail "no other store is there: $(cat "$work/text")"
"$siltfs" umount "$mnt"
await_gone "$store"
[[ $(cat "$work/text") == "# EOF" ]] || fail "without a store there is $(cat "$work/text")"
mount_it
await_line "siltfs_files{store=\"$store\"} 1"

step "the port is in use"
fails_with 1 "another process listens there" --listen "$address"
stop_exporter

step "IPv6, a path, and the messages for systemd"
if [[ -e /proc/net/if_inet6 ]] && grep -q '^0*1 ' /proc/net/if_inet6; then
  start_exporter '[::1]:0'
  await_line "siltfs_up{store=\"$store\"} 1"
  stop_exporter
fi
start_exporter "unix:$work/socket"
[[ $(stat -c %a "$work/socket") == 660 ]] || fail "the socket has mode $(stat -c %a "$work/socket")"
python3 - "$work/socket" <<'PYTHON' || fail "the socket does not answer"
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
text = connection.makefile("rb").read()
assert text.startswith(b"HTTP/1.") and b"siltfs_up{" in text, text
PYTHON
fails_with 1 "listen" --listen "unix:$work/socket"
kill -KILL "$exporter"
wait "$exporter" 2>/dev/null || true
start_exporter "unix:$work/socket" # the socket of a killed exporter is replaced
stop_exporter
[[ ! -e $work/socket ]] || fail "the socket is left over"
unmount_and_check

echo "all well"
