"""Requests to Amazon's web services with Signature Version 4: for the programs ec2 (beside this file) and awsbatch."""
import datetime
import hashlib
import hmac
import http.client
import os
import re
import ssl
import urllib.parse

ANSWER_MAX = 64 << 20
TIMEOUT_S = 60


class TooLong(OSError):
    """An answer of more than ANSWER_MAX bytes."""


def credentials(path):
    """The key, its secret and a session's token: of the file's first profile, or without a file of the environment."""
    if not path:
        return os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY"), os.environ.get("AWS_SESSION_TOKEN")
    with open(path, encoding="utf-8") as f:
        found = {}
        for name, value in re.findall(r"^\s*(aws_\w+)\s*=\s*(\S+)\s*$", f.read(), re.M):
            found.setdefault(name, value)
    return found.get("aws_access_key_id"), found.get("aws_secret_access_key"), found.get("aws_session_token")


def digest(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signed(path, fields, body, service, region, keys, now):
    """The head of a POST with Signature Version 4: AWS General Reference, "Signing AWS API requests"."""
    access, secret, session = keys
    fields = {**fields, "x-amz-date": now.strftime("%Y%m%dT%H%M%SZ"), **({"x-amz-security-token": session} if session else {})}
    names = ";".join(sorted(fields))
    request = "\n".join(["POST", path, "", *(f"{n}:{fields[n]}" for n in sorted(fields)), "", names, hashlib.sha256(body).hexdigest()])
    scope = f"{now:%Y%m%d}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", fields["x-amz-date"], scope, hashlib.sha256(request.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in scope.split("/")[0:4]:
        key = digest(key, part)
    return {**fields, "authorization": f"AWS4-HMAC-SHA256 Credential={access}/{scope}, SignedHeaders={names}, "
                                       f"Signature={digest(key, text).hex()}"}


def post(endpoint, path, kind, body, service, region, keys):
    """The answer's status and text. Raises OSError and http.client.HTTPException."""
    url = urllib.parse.urlsplit(endpoint)
    head = signed(path, {"host": url.netloc, "content-type": kind}, body, service, region, keys, datetime.datetime.now(datetime.timezone.utc))
    if url.scheme == "https":
        link = http.client.HTTPSConnection(url.netloc, timeout=TIMEOUT_S, context=ssl.create_default_context())
    else:
        link = http.client.HTTPConnection(url.netloc, timeout=TIMEOUT_S)
    link.request("POST", path, body, head)
    answer = link.getresponse()
    text = answer.read(ANSWER_MAX + 1)
    if len(text) > ANSWER_MAX:
        raise TooLong(f"the answer has more than {ANSWER_MAX >> 20} MiB")
    return answer.status, text
