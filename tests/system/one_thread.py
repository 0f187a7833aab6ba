"""One thread of a process stands still while the others go on, by ptrace: signals stop whole processes."""
import contextlib
import ctypes
import os

SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000  # linux/ptrace.h, linux/wait.h
CONT, GETEVENTMSG, TRACE_FORK, EVENT_FORK = 7, 0x4201, 2, 1
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(what, thread, data=None):
    if libc.ptrace(what, thread, None, data) < 0:
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


@contextlib.contextmanager
def held_at_fork(process, is_it):
    """From the next fork on of which is_it() says yes the process does nothing, and its child goes on. What is yielded waits for it."""
    ptrace(SEIZE, process, TRACE_FORK)
    child, there, stopped = ctypes.c_ulong(), [], []

    def wait():
        while not there:
            _, status = os.waitpid(process, WALL)
            stopped[:] = [status]
            if status >> 16 == EVENT_FORK:
                ptrace(GETEVENTMSG, process, ctypes.addressof(child))
                os.waitpid(child.value, WALL)
                if is_it():
                    there.append(child.value)
                ptrace(DETACH, child.value)
            if not there:
                ptrace(CONT, process, None if status >> 16 else os.WSTOPSIG(status))  # a signal it gets
                stopped.clear()

    try:
        yield wait
    finally:
        if not stopped:
            ptrace(INTERRUPT, process)
            os.waitpid(process, WALL)
        ptrace(DETACH, process)
