#!/usr/bin/env python3
"""Makes or empties a bucket of a service that speaks the protocol of S3.

usage: s3_bucket.py ENDPOINT make|empty|measure BUCKET

`make` succeeds if the bucket exists already; `empty` makes it, and removes all objects; `measure`
prints the number of objects and the sum of their sizes. The credentials are in AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY.
"""
import datetime
import hashlib
import hmac
import http.client
import os
import sys
import urllib.parse
import xml.etree.ElementTree

REGION = "us-east-1"


def _hmac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Bucket:
    """A bucket, with one connection to its service. For one thread."""

    def __init__(self, endpoint, name):
        self.host = urllib.parse.urlsplit(endpoint).netloc
        self.name = name
        self.connection = http.client.HTTPConnection(self.host, timeout=60)

    def request(self, method, key="", query=()):
        """Returns the status and the body."""
        path = urllib.parse.quote(f"/{self.name}/{key}" if key else f"/{self.name}")
        words = "&".join(f"{urllib.parse.quote(n, safe='')}={urllib.parse.quote(v, safe='')}" for n, v in sorted(query))
        empty = hashlib.sha256(b"").hexdigest()
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        signed = "host;x-amz-content-sha256;x-amz-date"
        canonical = f"{method}\n{path}\n{words}\nhost:{self.host}\nx-amz-content-sha256:{empty}\nx-amz-date:{date}\n\n{signed}\n{empty}"
        scope = f"{date[:8]}/{REGION}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signing = ("AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"]).encode()
        for part in (date[:8], REGION, "s3", "aws4_request"):
            signing = _hmac(signing, part)
        headers = {"x-amz-content-sha256": empty, "x-amz-date": date, "Content-Length": "0",
                   "Authorization": f"AWS4-HMAC-SHA256 Credential={os.environ['AWS_ACCESS_KEY_ID']}/{scope}, "
                                    f"SignedHeaders={signed}, Signature={_hmac(signing, text).hex()}"}
        return self._send(method, path + (f"?{words}" if words else ""), headers)

    def _send(self, method, path, headers, again=True):
        try:
            self.connection.request(method, path, headers=headers)
            answer = self.connection.getresponse()
            return answer.status, answer.read()
        except (http.client.HTTPException, ConnectionError):
            # The service closes connections that are idle. All these requests may be repeated.
            self.connection.close()
            if not again:
                raise
            return self._send(method, path, headers, again=False)

    def make(self):
        status, body = self.request("PUT")
        if status not in (200, 409):
            raise OSError(f"PUT of the bucket: {status} {body.decode(errors='replace')}")

    def objects(self, prefix=""):
        """Yields the key and the size of each object below the prefix."""
        query = {"list-type": "2", "encoding-type": "url", "prefix": prefix}
        while True:
            status, body = self.request("GET", query=query.items())
            if status != 200:
                raise OSError(f"list: {status} {body.decode(errors='replace')}")
            root = xml.etree.ElementTree.fromstring(body)
            space = root.tag[: root.tag.index("}") + 1]
            for found in root.iter(f"{space}Contents"):
                yield urllib.parse.unquote_plus(found.findtext(f"{space}Key")), int(found.findtext(f"{space}Size"))
            if root.findtext(f"{space}IsTruncated") != "true":
                return
            query["continuation-token"] = root.findtext(f"{space}NextContinuationToken")

    def empty(self):
        self.make()
        self.remove("")

    def remove(self, prefix):
        """Removes the objects below the prefix."""
        for key, _ in list(self.objects(prefix)):
            status, body = self.request("DELETE", key)
            if status not in (200, 204):
                raise OSError(f"DELETE {key}: {status} {body.decode(errors='replace')}")

    def measure(self, prefix=""):
        """Returns the number of the objects below the prefix, and the sum of their sizes."""
        sizes = [size for _, size in self.objects(prefix)]
        return len(sizes), sum(sizes)


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in ("make", "empty", "measure"):
        raise SystemExit(__doc__)
    if found := getattr(Bucket(sys.argv[1], sys.argv[3]), sys.argv[2])():
        print(*found)


if __name__ == "__main__":
    main()
