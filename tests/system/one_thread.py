"""One thread of a process stands still while the others go on, by ptrace: signals stop whole processes."""
import contextlib
import ctypes
import os

SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000  # linux/ptrace.h, linux/wait.h
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(what, thread):
    if libc.ptrace(what, thread, None, None) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"ptrace {what:#x} of thread {thread}: {os.strerror(error)}")


@contextlib.contextmanager
def held(thread):
    """The thread does nothing meanwhile. A process's first thread has the process's number."""
    ptrace(SEIZE, thread)
    ptrace(INTERRUPT, thread)
    os.waitpid(thread, WALL)
    try:
        yield
    finally:
        try:
            ptrace(DETACH, thread)
        except ProcessLookupError:  # its process has ended, and waits for us to see it
            os.waitpid(thread, WALL)
