"""A process whose memory nobody can look at: one of its threads reads, through /proc/self/mem, a page of a file whose file system does
not answer, and holds the lock of its address space meanwhile; another waits for that lock, and all who come later wait behind it. Any user
who may mount a file system of his own (fuse(4)) can make such a process, and /proc/PID/environ and cmdline of it are read for ever."""
import contextlib
import ctypes
import errno
import os
import struct
import subprocess
import sys
import threading

from drover import UNSEEN, wait_until

LOOKUP, GETATTR, OPEN, READ, INIT, CREATE = 1, 3, 14, 15, 26, 35
ROOT, FILE, SIZE = 1, 2, 4096

PROGRAM = r"""
import ctypes, mmap, os, sys, threading
ctypes.CDLL(None).prctl(15, NAME)  # PR_SET_NAME: tests that look for their own processes leave this one out
f = os.fdopen(int(sys.argv[1]), "rb")
m = mmap.mmap(f.fileno(), 4096, access=mmap.ACCESS_COPY)
where = ctypes.addressof(ctypes.c_char.from_buffer(m))
memory = os.open("/proc/self/mem", os.O_RDONLY)
threading.Thread(target=lambda: os.pread(memory, 1, where), daemon=True).start()
sys.stdin.readline()
mmap.mmap(-1, 1 << 20)
""".replace("NAME", repr(UNSEEN.strip()))


class Silent:
    """A file system with one file, whose contents nobody ever gets; nor does who makes another ever hear whether it is there."""

    def __init__(self, folder):
        self.folder, self.held = folder, threading.Event()
        self.device = os.open("/dev/fuse", os.O_RDWR)
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self.device},rootmode=40000,user_id=0,group_id=0,allow_other"
        if libc.mount(b"silent", folder.encode(), b"fuse", 0, options.encode()) < 0:
            error = ctypes.get_errno()
            os.close(self.device)
            raise OSError(error, os.strerror(error))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def attributes(self, node):
        mode = 0o100644 if node == FILE else 0o40755
        return struct.pack("6Q10I", node, SIZE, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, SIZE, 0)

    def answer(self, op, node):
        if op == INIT:
            return struct.pack("IIIIHHIIHHI7I", 7, 31, 4096, 0, 1, 1, 4096, 1, 0, 0, 0, *([0] * 7))
        if op == LOOKUP:
            return struct.pack("QQQQII", FILE, 1, 3600, 3600, 0, 0) + self.attributes(FILE)
        if op == GETATTR:
            return struct.pack("QII", 3600, 0, 0) + self.attributes(node)
        return struct.pack("QII", 0, 0, 0) if op == OPEN else None

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                said = os.read(self.device, 1 << 20)
                _, op, unique, node = struct.unpack_from("IIQQ", said)
                if op in (READ, CREATE):
                    self.held.set()
                    continue
                body = self.answer(op, node) if op != LOOKUP or said[40:] == b"file\0" else b""
                error = 0 if body else -errno.ENOENT if op == LOOKUP else -errno.ENOSYS
                os.write(self.device, struct.pack("IiQ", 16 + len(body or b""), error, unique) + (body or b""))

    def close(self):
        ctypes.CDLL(None).umount2(self.folder.encode(), 1 | 2)  # MNT_FORCE: what waits is told, MNT_DETACH
        os.close(self.device)


@contextlib.contextmanager
def process(folder, user=None, env=None):
    """Its pid; None where this kernel, or the machine, has nothing of the kind."""
    os.makedirs(folder)
    try:
        silent = Silent(folder)
    except OSError:
        yield None
        return
    with open(os.path.join(folder, "file"), "rb", buffering=0) as f:
        p = subprocess.Popen([sys.executable, "-c", PROGRAM, str(f.fileno())], user=user.pw_uid if user else None, env=env,
                             stdin=subprocess.PIPE, start_new_session=True, pass_fds=[f.fileno()])
    try:
        wait_until(lambda: silent.held.is_set() or p.poll() is not None)
        assert p.poll() is None
        p.stdin.write(b"\n")
        p.stdin.flush()
        wait_until(lambda: is_unseen(p.pid))
        yield p.pid
    finally:
        silent.close()
        p.kill()
        p.wait()


def is_unseen(pid):
    """Somebody who reads its command line waits for more than two seconds."""
    try:
        subprocess.run(["head", "-c1", f"/proc/{pid}/cmdline"], stdout=subprocess.DEVNULL, timeout=2, check=False)
    except subprocess.TimeoutExpired:
        return True
    return False
