#!/usr/bin/env python3
"""A small service with the protocol of S3, for tests, with faults on demand.

usage: s3_server.py [--bucket NAME] [--key-id ID] [--secret SECRET] [--token TOKEN]
                    [--certificate PEM_FILE] [--port PORT] [--bucket-in-host]
                    [--ignore HEADER] [--plain-etags] [--forward URL]
                    [--address ADDRESS] [--history FILE]

It keeps one bucket in memory. It implements GET (with ranges and If-Match), HEAD, PUT (with
If-None-Match and If-Match), DELETE and ListObjectsV2, and verifies signatures (AWS Signature
Version 4) and checksums with code of its own. It listens on ADDRESS (127.0.0.1). FILE gets a line in
JSON for each change of an object: ["PUT", KEY, SIZE, FIRST_256_BYTES, LAST_8_BYTES] or
["DELETE", KEY], with the bytes in base64. The server prints a line
{"port": PORT} when it is ready. Each further line of standard input is a command in JSON; the
server prints one line in JSON for it. It ends at the end of standard input. POST /_control takes
the same commands.

With --forward it keeps nothing: it passes the requests to a real service, as they are, and injects
the faults on the way. The commands `clock`, `token`, `secret`, `bucket` and `corrupt` then do nothing.

Commands:
  {"fault": KIND, "on": METHOD, "skip": N, "times": N, ...}
        The next `times` requests (default 1) with this method after `skip` others get this fault.
        METHOD is GET, HEAD, PUT, DELETE, LIST or * (default).
  {"random": SEED, "rate": R}   each request gets a fault of RANDOM_FAULTS with probability R
  {"heal": true}                no more faults
  {"clock": SECONDS}            the server's clock is ahead by so much
  {"token": TOKEN} {"secret": SECRET} {"bucket": NAME}    what is accepted from now on
  {"corrupt": KEY}              changes a byte of the object, but not its metadata
  {"remove": KEY} {"put": KEY, "text": TEXT}      changes objects without a request
  {"cut": KEY, "size": BYTES}   leaves the first bytes of the object
  {"exchange": [KEY, KEY]}      each object gets the content of the other one
  {"keys": PREFIX}              the keys of all objects with the prefix: {"keys": [KEY, ...]}
  {"log": true}                 the requests so far: [[METHOD, KEY, QUERY, STATUS, PORT_OF_CLIENT]],
                                with status 0 while a request stalls

Kinds of faults; with "effect": true the request takes effect before:
  status     answers "status" with the error "code"; "retry_after" is a header
  reset      resets the connection
  truncate   closes the connection in the middle of the body
  long       sends more bytes than the range has, with a fitting Content-Length
  flip       flips a bit of the body, but not of ranges, which only their readers can verify
  range      sends a wrong Content-Range
  etag       sends a wrong ETag, if the request has If-Match
  html       answers 200 with an HTML page
  stall      sends nothing until the client closes the connection
  slow       sends the body byte by byte, until the client closes the connection
  body       answers 200 with "text" as XML
  empty      answers a listing with no objects, but with a continuation
  delay      answers after "seconds"
"""

import argparse
import base64
import calendar
import email.utils
import hashlib
import hmac
import http.client
import http.server
import json
import os
import random
import re
import select
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

MAX_SKEW = 900
RANDOM_FAULTS = [
    {"fault": "status", "status": 500, "code": "InternalError"},
    {"fault": "status", "status": 500, "code": "InternalError", "effect": True},
    {"fault": "status", "status": 503, "code": "SlowDown"},
    {"fault": "reset"},
    {"fault": "reset", "effect": True},
    {"fault": "truncate"},
    {"fault": "long"},
    {"fault": "flip"},
    {"fault": "range"},
    {"fault": "etag"},
    {"fault": "html"},
    {"fault": "html", "effect": True},
    {"fault": "delay", "seconds": 0.2},
]


class State:
    """The bucket, and the faults to come."""

    def __init__(self, options):
        self.lock = threading.Lock()
        self.bucket = options.bucket
        self.key_id = options.key_id
        self.secret = options.secret
        self.token = options.token
        self.ignored = options.ignore
        self.plain_etags = options.plain_etags
        self.bucket_in_host = options.bucket_in_host
        self.objects = {}
        self.faults = []
        self.random = None
        self.rate = 0
        self.clock = 0
        self.log = []
        self.history = open(options.history, "a", encoding="ascii") if options.history else None

    def changed(self, *change):
        """Called under the lock, before the change is answered."""
        if self.history:
            self.history.write(json.dumps(change) + "\n")
            self.history.flush()

    def now(self):
        return time.time() + self.clock

    def control(self, command):
        with self.lock:
            if "fault" in command:
                self.faults.append(dict(command))
            if "random" in command:
                self.random = random.Random(command["random"])
                self.rate = command["rate"]
            if command.get("heal"):
                self.faults, self.random = [], None
            for name in ("clock", "token", "secret", "bucket"):
                if name in command:
                    setattr(self, name, command[name])
            if "corrupt" in command:
                stored = self.objects[command["corrupt"]]
                content = bytearray(stored["content"])
                content[len(content) // 2] ^= 1
                stored["content"] = bytes(content)
            if "remove" in command:
                del self.objects[command["remove"]]
            if "put" in command:
                self.objects[command["put"]] = {"content": command["text"].encode(), "etag": '"put"', "metadata": {}}
            if "cut" in command:
                stored = self.objects[command["cut"]]
                stored["content"] = stored["content"][: command["size"]]
            if "exchange" in command:
                first, second = command["exchange"]
                self.objects[first], self.objects[second] = self.objects[second], self.objects[first]
            if "keys" in command:
                return {"keys": sorted(key for key in self.objects if key.startswith(command["keys"]))}
            if "log" in command:
                return {"log": self.log}
        return {"ok": True}

    def fault_for(self, method):
        with self.lock:
            for fault in self.faults:
                if fault.get("on", "*") not in ("*", method):
                    continue
                if fault.get("skip", 0) > 0:
                    fault["skip"] -= 1
                    continue
                fault["times"] = fault.get("times", 1) - 1
                if fault["times"] <= 0:
                    self.faults.remove(fault)
                return fault
            if self.random is not None and self.random.random() < self.rate:
                return self.random.choice(RANDOM_FAULTS)
        return None


class S3Failure(Exception):
    def __init__(self, status, code, message="", headers=()):
        super().__init__(code)
        self.status, self.code, self.message, self.headers = status, code, message, dict(headers)


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def check_signature(state, request, payload_hash):
    """Raises S3Failure unless the request is signed with the right secret at about this time."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    match = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})",
        headers.get("authorization", ""))
    if not match:
        raise S3Failure(403, "AccessDenied", "the request is not signed")
    key_id, day, region, names, signature = match.groups()
    if key_id != state.key_id:
        raise S3Failure(403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")
    if headers.get("x-amz-security-token", "") != state.token:
        raise S3Failure(400, "ExpiredToken", "The provided token has expired.")
    date = headers.get("x-amz-date", "")
    if not date.startswith(day):
        raise S3Failure(403, "SignatureDoesNotMatch", "the date is not that of the scope")
    if abs(calendar.timegm(time.strptime(date, "%Y%m%dT%H%M%SZ")) - state.now()) > MAX_SKEW:
        raise S3Failure(403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.")
    signed = names.split(";")
    must_be_signed = {name for name in headers if name.startswith("x-amz-") or name in ("host", "range", "if-match", "if-none-match")}
    if signed != sorted(signed) or not must_be_signed <= set(signed):
        raise S3Failure(403, "AccessDenied", "headers are missing in the signature")
    path, _, query = request.path.partition("?")
    pairs = sorted((urllib.parse.quote(name, safe="-_.~"), urllib.parse.quote(value, safe="-_.~"))
                   for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True))
    canonical = "\n".join([
        request.command,
        urllib.parse.quote(urllib.parse.unquote_to_bytes(path), safe="/-_.~"),
        "&".join(f"{name}={value}" for name, value in pairs),
        "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in signed),
        names,
        payload_hash,
    ])
    scope = f"{day}/{region}/s3/aws4_request"
    to_sign = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = sign(sign(sign(sign(b"AWS4" + state.secret.encode(), day), region), "s3"), "aws4_request")
    if not hmac.compare_digest(hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest(), signature):
        raise S3Failure(403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided.")


class Reply:
    length = None  # of the body, if a reply to HEAD has none

    def __init__(self, status, body=b"", headers=()):
        self.status, self.body, self.headers = status, body, dict(headers)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state = None
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.serve()

    do_HEAD = do_PUT = do_DELETE = do_GET

    def do_POST(self):
        size = int(self.headers.get("content-length", 0))
        command = self.rfile.read(size)
        if self.path != "/_control":
            return self.send(Reply(405))
        self.send(Reply(200, json.dumps(self.state.control(json.loads(command))).encode()))

    def serve(self):
        # Clients name the host in the path if they take this server for a proxy.
        self.path = re.sub(r"^http://[^/]+", "", self.path)
        self.body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.bucket, self.key, self.query = self.split_path()
        self.kind = "LIST" if self.command == "GET" and not self.key else self.command
        fault = self.state.fault_for(self.kind)
        if fault and not fault.get("effect") and self.instead(fault):
            return
        reply = self.reply()
        if fault and fault.get("effect") and self.instead(fault):
            return
        if fault:
            self.spoil(reply, fault)
        else:
            self.send(reply)

    def reply(self):
        try:
            self.check()
            return getattr(self, "serve_" + self.kind.lower())()
        except S3Failure as failure:
            return self.failure(failure.status, failure.code, failure.message, failure.headers)

    def split_path(self):
        path, _, query = self.path.partition("?")
        path = urllib.parse.unquote(path)
        query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        host = self.headers.get("host", "").rsplit(":", 1)[0]
        if host.endswith(".localhost"):
            return host[: -len(".localhost")], path[1:], query
        if self.state.bucket_in_host:
            return "", path[1:], query
        bucket, _, key = path[1:].partition("/")
        return bucket, key, query

    def check(self):
        payload_hash = self.headers.get("x-amz-content-sha256", "")
        check_signature(self.state, self, payload_hash)
        digest = hashlib.sha256(self.body)
        if payload_hash != digest.hexdigest():
            raise S3Failure(400, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
        checksum = self.headers.get("x-amz-checksum-sha256")
        if checksum is not None and base64.b64decode(checksum) != digest.digest():
            raise S3Failure(400, "BadDigest", "The SHA256 you specified did not match the calculated checksum.")
        if self.bucket != self.state.bucket:
            raise S3Failure(404, "NoSuchBucket", "The specified bucket does not exist")

    # Operations. Each runs under the lock, so the bucket is linearizable.

    def serve_put(self):
        if "x-amz-checksum-sha256" not in self.headers:  # S3 would take it
            raise S3Failure(400, "InvalidRequest", "This server takes no object without a checksum.")
        etag = '"' + hashlib.md5(self.body, usedforsecurity=False).hexdigest() + '"'
        metadata = {name.lower(): value for name, value in self.headers.items() if name.lower().startswith("x-amz-meta-")}
        with self.state.lock:
            stored = self.state.objects.get(self.key)
            if self.headers.get("if-none-match") == "*" and stored and self.state.ignored != "if-none-match":
                raise S3Failure(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
            wanted = self.headers.get("if-match") if self.state.ignored != "if-match" else None
            if wanted is not None and not stored:
                raise S3Failure(404, "NoSuchKey", "The specified key does not exist.")
            if wanted is not None and wanted != (stored["etag"].strip('"') if self.state.plain_etags else stored["etag"]):
                raise S3Failure(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
            self.state.objects[self.key] = {"content": self.body, "etag": etag, "metadata": metadata}
            ends = (base64.b64encode(part).decode() for part in (self.body[:256], self.body[-8:]))
            self.state.changed("PUT", self.key, len(self.body), *ends)
        return Reply(200, headers={"ETag": etag})

    def find(self):
        with self.state.lock:
            stored = self.state.objects.get(self.key)
            if stored is None:
                raise S3Failure(404, "NoSuchKey", "The specified key does not exist.")
            if self.headers.get("if-match") not in (None, stored["etag"]):
                raise S3Failure(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
            return dict(stored)

    def serve_get(self):
        stored = self.find()
        content = stored["content"]
        headers = {"ETag": stored["etag"], "Content-Type": "application/octet-stream", "Accept-Ranges": "bytes", **stored["metadata"]}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range", ""))
        if not wanted:
            return Reply(200, content, headers)
        first, last = int(wanted[1]), min(int(wanted[2]), len(content) - 1)
        if first >= len(content):
            raise S3Failure(416, "InvalidRange", "The requested range is not satisfiable", {"Content-Range": f"bytes */{len(content)}"})
        headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        return Reply(206, content[first : last + 1], headers)

    serve_head = serve_get

    def serve_delete(self):
        with self.state.lock:
            if self.state.objects.pop(self.key, None) is not None:
                self.state.changed("DELETE", self.key)
        return Reply(204)

    def serve_list(self):
        prefix = self.query.get("prefix", "")
        after = self.query.get("start-after", "")
        token = self.query.get("continuation-token")
        if token is not None:
            after = base64.b64decode(token).decode()
        limit = min(int(self.query.get("max-keys", 1000)), 1000)
        with self.state.lock:
            found = sorted(key for key in self.state.objects if key.startswith(prefix) and key > after)
            page = [(key, self.state.objects[key]) for key in found[:limit]]
        return self.listing(page, len(found) > limit, page[-1][0] if page else "")

    def listing(self, page, truncated, last):
        quote = urllib.parse.quote_plus if self.query.get("encoding-type") == "url" else escape
        text = "<?xml version='1.0' encoding='UTF-8'?>\n<ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'>"
        if quote is not escape:
            text += "<EncodingType>url</EncodingType>"
        text += f"<IsTruncated>{'true' if truncated else 'false'}</IsTruncated>"
        if truncated:
            text += f"<NextContinuationToken>{base64.b64encode(last.encode()).decode()}</NextContinuationToken>"
        for key, stored in page:
            text += f"<Contents><Key>{quote(key)}</Key><ETag>{escape(stored['etag'])}</ETag><Size>{len(stored['content'])}</Size></Contents>"
        return Reply(200, (text + "</ListBucketResult>").encode(), {"Content-Type": "application/xml"})

    # Replies and their faults.

    def failure(self, status, code, message="", headers=()):
        text = f"<?xml version='1.0' encoding='UTF-8'?>\n<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
        return Reply(status, text.encode(), {"Content-Type": "application/xml", **dict(headers)})

    def send(self, reply, length=None):
        with self.state.lock:
            self.state.log.append([self.command, getattr(self, "key", ""), getattr(self, "query", {}), reply.status, self.client_address[1]])
        self.send_response_only(reply.status)
        self.send_header("Date", email.utils.formatdate(self.state.now(), usegmt=True))
        if length is None:
            length = len(reply.body) if reply.length is None else reply.length
        if reply.status != 204:
            self.send_header("Content-Length", str(length))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    def instead(self, fault):
        """Faults that replace the whole reply. False for the others."""
        kind = fault["fault"]
        if kind == "status":
            headers = {"Retry-After": str(fault["retry_after"])} if "retry_after" in fault else {}
            self.send(self.failure(fault["status"], fault.get("code", "InternalError"), fault.get("message", "a fault of a test"), headers))
        elif kind == "html":
            self.send(Reply(200, b"<html><body>Please log in</body></html>", {"Content-Type": "text/html; charset=utf-8", "ETag": '"page"'}))
        elif kind == "body":
            self.send(Reply(200, fault["text"].encode(), {"Content-Type": "application/xml"}))
        elif kind == "reset":
            self.reset()
        elif kind == "stall":
            with self.state.lock:
                self.state.log.append([self.command, self.key, self.query, 0, self.client_address[1]])
            self.wait_for_close()
        elif kind == "empty":
            self.send(self.listing([], True, self.query.get("start-after", "")))
        else:
            return False
        return True

    def spoil(self, reply, fault):
        """Faults that change the reply."""
        kind = fault["fault"]
        body = reply.body
        if self.command == "HEAD":
            self.send(reply)  # another length could not be noticed
        elif kind == "truncate":
            self.send(Reply(reply.status, body[: len(body) // 2], reply.headers), len(body) + 1)
            self.close_connection = True
        elif kind == "delay":
            time.sleep(fault["seconds"])
            self.send(reply)
        elif kind == "slow":
            self.send(Reply(reply.status, b"", reply.headers), len(body) + 10_000_000)
            while not self.closed(0.02):
                self.wfile.write(b"x")
            self.close_connection = True
        else:
            if kind == "long":
                body += b"surplus"
            elif kind == "flip" and body and reply.status != 206:
                body = body[:-1] + bytes([body[-1] ^ 1])
            elif kind == "range" and "Content-Range" in reply.headers:
                first, rest = reply.headers["Content-Range"][6:].split("-", 1)
                reply.headers["Content-Range"] = f"bytes {int(first) + 1}-{rest}"
            elif kind == "etag" and "ETag" in reply.headers and "if-match" in self.headers and self.command == "GET":
                reply.headers["ETag"] = '"another"'
            self.send(Reply(reply.status, body, reply.headers))

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        # close() would wait for the files that were made of the socket.
        os.close(self.connection.detach())

    def closed(self, seconds):
        readable, _, _ = select.select([self.connection], [], [], seconds)
        try:
            return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True

    def wait_for_close(self):
        while not self.closed(1):
            pass
        self.close_connection = True


class ForwardingHandler(Handler):
    """Passes requests to the service `target`. Each connection of a client has one to the service."""

    target = None
    upstream = None

    def check(self):
        pass

    def reply(self):
        # The signature includes the header Host, which names this server and stays as it is.
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("connection", "expect")}
        try:
            if self.upstream is None:
                self.upstream = http.client.HTTPConnection(self.target, timeout=120)
            self.upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                self.upstream.putheader(name, value)
            self.upstream.endheaders(self.body)
            answer = self.upstream.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.upstream.close()
            self.upstream = None
            return self.failure(502, "BadGateway", str(error))
        kept = {name: value for name, value in answer.getheaders()
                if name.lower() not in ("connection", "content-length", "date", "keep-alive", "transfer-encoding")}
        reply = Reply(answer.status, content, kept)
        if self.command == "HEAD":
            reply.length = int(answer.getheader("Content-Length", 0))
        return reply

    def finish(self):
        if self.upstream is not None:
            self.upstream.close()
        super().finish()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass  # a client that closes its connection is no error


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bucket", default="bucket")
    parser.add_argument("--key-id", default="test-key")
    parser.add_argument("--secret", default="test-secret")
    parser.add_argument("--token", default="")
    parser.add_argument("--certificate")
    parser.add_argument("--ignore", default="", help="a condition of PUT that is ignored")
    parser.add_argument("--plain-etags", action="store_true",
                        help="compare If-Match of a PUT with the ETag without quotes, as old releases of Ceph do")
    parser.add_argument("--bucket-in-host", action="store_true", help="find no bucket in paths")
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--forward", metavar="URL", help="the address of a service to which requests are passed")
    parser.add_argument("--history", help="a file for all changes of objects")
    options = parser.parse_args()
    state = State(options)
    Handler.state = state
    ForwardingHandler.target = urllib.parse.urlsplit(options.forward or "").netloc
    server = Server((options.address, options.port), ForwardingHandler if options.forward else Handler)
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"port": server.server_address[1]}), flush=True)
    for line in sys.stdin:
        print(json.dumps(state.control(json.loads(line))), flush=True)
    os._exit(0)


main()
