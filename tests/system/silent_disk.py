"""A file system that stops answering: a folder of FUSE's (linux/fuse.h), whose files nobody ever gets to know. Who asks for one waits in the kernel,
deaf to SIGKILL, as with a file server that has gone."""
import contextlib
import ctypes
import errno
import os
import struct
import threading
import time

LOOKUP, FORGET, GETATTR, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 26, 36, 42
FORCE, DETACH = 1, 2  # MNT_FORCE and MNT_DETACH
libc = ctypes.CDLL(None, use_errno=True)


def call(result, what):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def answer(opcode):
    """Of the folder itself: (error, what), or nothing."""
    if opcode == INIT:
        return 0, struct.pack("IIIIHHIIHHI28x", 7, 31, 0, 0, 0, 0, 4096, 1, 1, 0, 0)
    if opcode == GETATTR:
        now = int(time.time())
        return 0, struct.pack("QIIQQQQQQIIIIIIIIII", 3600, 0, 0, 1, 0, 0, now, now, now, 0, 0, 0, 0o40777, 2, 0, 0, 0, 4096, 0)
    return -errno.ENOSYS, b""


def serve(fd, asked):
    while True:
        try:
            request = os.read(fd, 1 << 17)
        except OSError:  # unmounted
            return
        _, opcode, unique = struct.unpack_from("IIQ", request)
        if opcode == LOOKUP:
            asked.set()
        if opcode in (LOOKUP, FORGET, INTERRUPT, BATCH_FORGET):
            continue
        error, data = answer(opcode)
        os.write(fd, struct.pack("IiQ", 16 + len(data), error, unique) + data)


class Silent:
    """Mounted on the folder until `end`, after which all that waits gets an error."""

    def __init__(self, folder):
        self.folder, self.asked = folder, threading.Event()
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other"
        call(libc.mount(b"silent", folder.encode(), b"fuse", 0, options.encode()), "mount of fuse")
        self.thread = threading.Thread(target=serve, args=(self.fd, self.asked), daemon=True)
        self.thread.start()

    def end(self):
        if self.fd < 0:
            return
        libc.umount2(self.folder.encode(), FORCE)  # ends all that waits; it may still be busy then
        libc.umount2(self.folder.encode(), DETACH)
        self.thread.join(60)
        os.close(self.fd)
        self.fd = -1


@contextlib.contextmanager
def silent(folder):
    os.mkdir(folder)
    disk = Silent(folder)
    try:
        yield disk
    finally:
        disk.end()
