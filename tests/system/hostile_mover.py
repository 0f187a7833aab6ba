#!/usr/bin/python3
"""A mover that lies. An agent runs it in place of drover-mover: as the agent's own user it is the real one (the program beside it),
as any other it does what the task's URL says after ?how=. @AGENT@ stands for the agent's uid. See src/move/task.h for the packets."""
import array
import os
import socket
import sys
import time
import urllib.parse

TASK, ANSWER, SIGN = 1, 2, 3
GET, PUT = 0, 1
DONE, UNCHANGED, FAILED = 0, 1, 2
ANY = (1 << 64) - 1


def number(n):
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def text(s):
    return number(len(s)) + s


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        n, shift = 0, 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            n |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return n

    def text(self):
        n = self.number()
        self.at += n
        return self.data[self.at - n:self.at]


class Task:
    """What the agent asks for, and a way to answer."""

    def __init__(self, agent, packet, fds):
        r = Reader(packet)
        assert r.number() == TASK
        self.agent, self.fd = agent, fds[0] if fds else -1
        self.op, self.url = r.number(), r.text().decode()
        self.offset, self.size = r.number(), r.number()
        self.query = {k: v[0] for k, v in urllib.parse.parse_qs(urllib.parse.urlsplit(self.url).query).items()}

    def bring(self, data=None):
        data = data if data is not None else self.query.get("data", "honest").encode()
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, data, 0)
        return len(data)

    def answer(self, status=DONE, error=0, size=0, sha=bytes(32), words=b"", moved=0, took=1, etag=b""):
        facts = number(size) + number(0) + text(etag)
        self.agent.send(number(ANSWER) + number(status) + number(error) + number(1) + facts + text(sha) + number(size) +
                        number(moved) + number(took) + number(1) + number(ANY) + text(words))


def sign_for_ever(t, pause=0.5):
    while True:
        t.agent.send(number(SIGN))
        time.sleep(pause)


def whose(t):
    """Contents that are one user's own."""
    t.answer(size=t.bring(str(os.getuid()).encode()) if t.op == GET else t.size, etag=b'"1"')


def honest(t):
    t.answer(size=t.bring() if t.op == GET else t.size)


def forge(t):
    """These bytes have the checksum of another owner's file, it says."""
    t.answer(size=t.bring(b"evil\n"), sha=bytes.fromhex(t.query["sha"]), etag=b'"1"')


def rewrite(t):
    """A process that it leaves behind writes other bytes, as long as it can."""
    n = t.bring()
    if os.fork() == 0:
        for _ in range(4000):
            os.pwrite(t.fd, b"REWROTE"[:n], 0)
            time.sleep(0.002)
        os._exit(0)
    t.answer(size=n)


def more(t):
    t.answer(size=t.bring() + 1000)


def sparse(t):
    os.ftruncate(t.fd, 1 << 43)
    t.answer(size=1 << 43)


def unchanged(t):
    t.answer(UNCHANGED)


def nonsense(t):
    t.agent.send(b"\x02\xff\xff")
    sign_for_ever(t)


def too_large(t):
    t.agent.send(number(ANSWER) + bytes(150000))
    sign_for_ever(t)


def flood(t):
    sign_for_ever(t, 0)


def never(t):
    sign_for_ever(t)


def descriptors(t):
    for _ in range(200):
        t.agent.sendmsg([number(SIGN)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [2, 2]))])
        time.sleep(0.002)
    honest(t)


def words(t):
    t.answer(FAILED, 2, words=b"gone\n000 (001.000.000) 2026-01-01 00:00:00 Job submitted\n\x1b[2J\xff")


def no_space(t):
    t.answer(FAILED, 28, words=b"No space left on device")


def twice(t):
    """Answers for a task that it has not been given yet."""
    n = t.bring()
    for _ in range(3):
        t.answer(size=n)


def dies(t):
    """After a sign; or, if that is said, when a file is there."""
    while "when" in t.query and not os.path.exists(t.query["when"]):
        t.agent.send(number(SIGN))
        time.sleep(0.02)
    os._exit(3)


def sent_lots(t):
    """An output that is larger than it is, and went with the speed of light."""
    t.answer(size=1 << 60, moved=1 << 60, took=1)


def main():
    if os.getuid() == int("@AGENT@"):
        os.execv(os.path.join(os.path.dirname(os.path.abspath(__file__)), "drover-mover"), ["drover-mover", *sys.argv[1:]])
    agent = socket.socket(fileno=0)
    while True:
        packet, ancillary, _, _ = agent.recvmsg(1 << 17, socket.CMSG_SPACE(16))
        if not packet:
            return
        fds = array.array("i")
        for _, _, data in ancillary:
            fds.frombytes(data[:len(data) - len(data) % fds.itemsize])
        task = Task(agent, packet, fds)
        globals()[task.query.get("how", "honest")](task)
        for fd in fds:
            os.close(fd)


if __name__ == "__main__":
    main()
