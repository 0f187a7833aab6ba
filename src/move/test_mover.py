#!/usr/bin/python3
"""A mover for a scheme of our own: copy:///path is the file /path. See drover-mover(8) for what is said.

A second scheme, bad:, does what a bad program does: bad://silent/, bad://lingers/, bad://crash/, bad://chatter/, bad://again/.
"""
import json
import os
import shutil
import sys
import time
import urllib.parse
import zlib

FILE = 3  # the local file


def say(**event):
    print(json.dumps(event), flush=True)


def facts(path):
    st = os.stat(path)
    return {"size": st.st_size, "modified": int(st.st_mtime), "etag": f"{st.st_mtime_ns}-{st.st_size}"}


def get(request, path):
    now = facts(path)
    if request.get("known", {}).get("etag") == now["etag"]:
        say(event="unchanged")
        return
    with open(path, "rb") as source, os.fdopen(FILE, "wb") as target:
        shutil.copyfileobj(source, target)
        target.flush()
    say(event="done", **now)


def put(request, path):
    temporary = f"{path}.drover-{request['tag']}.tmp"
    left = request["size"]
    with os.fdopen(FILE, "rb") as source, open(temporary, "wb") as target:  # it stands at the offset already
        while left > 0:
            piece = source.read(min(left, 1 << 16))
            left -= len(piece)
            target.write(piece)
            say(event="progress", bytes=request["size"] - left)
    os.rename(temporary, path)
    say(event="done", size=request["size"])


def adler32(path):
    with open(path, "rb") as f:
        return f"{zlib.adler32(f.read()):08x}"


def copy(request, path):
    """From store to store; a name with "wrong" in it gets other bytes."""
    temporary = f"{path}.drover-{request['tag']}.tmp"
    shutil.copyfile(urllib.parse.unquote(urllib.parse.urlsplit(request["source"]).path), temporary)
    if "wrong" in path:
        with open(temporary, "r+b") as f:
            f.write(b"X")
    say(event="progress", bytes=request["size"])
    os.rename(temporary, path)
    say(event="done", op="copy")


def misbehave(how):
    if how == "silent":
        time.sleep(600)
    elif how == "lingers":
        os.close(1)
        time.sleep(600)
    elif how == "crash":
        os.abort()
    elif how == "chatter":
        print("this is no JSON", flush=True)
    elif how == "again":
        say(event="failed", text="the tape is not in yet", again=True)


def main():
    request = json.loads(sys.stdin.readline())
    url = urllib.parse.urlsplit(request["url"])
    path = urllib.parse.unquote(url.path)
    try:
        if url.scheme == "bad":
            misbehave(url.netloc)
        elif request["op"] == "get":
            get(request, path)
        elif request["op"] == "put":
            put(request, path)
        elif request["op"] == "look":
            say(event="done", op="look", **facts(path), adler32=adler32(path))
        elif request["op"] == "copy":
            copy(request, path)
        elif request["op"] == "space":
            found = os.statvfs(path if os.path.exists(path) else "/")
            say(event="done", op="space", free=found.f_bavail * found.f_frsize)
        elif request["op"] == "mkdir":
            os.makedirs(path, exist_ok=True)
            say(event="done", op="mkdir")
        else:  # probe; and rm, which it does not know
            say(event="done")
    except OSError as e:
        say(event="failed", text=e.strerror, again=False)


main()
