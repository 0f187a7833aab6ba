"""One thread of a process stands still while the others go on, by ptrace: signals stop whole processes."""
import contextlib
import ctypes
import os
import time

SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000  # linux/ptrace.h, linux/wait.h
CONT, GETEVENTMSG = 7, 0x4201
TRACE_CHILDREN, EVENT_FORK, EVENT_VFORK, EVENT_CLONE = 14, 1, 2, 3  # fork, vfork and clone
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
    """From the next child on that any thread of the process makes, and of which is_it() says yes, its first thread does
    nothing; that child and the other threads go on. What is yielded waits for it."""
    going, held_ones = set(), set()
    for thread in map(int, os.listdir(f"/proc/{process}/task")):
        ptrace(SEIZE, thread, TRACE_CHILDREN)
        going.add(thread)

    def go_on(thread, stop_signal=None):
        ptrace(CONT, thread, stop_signal)
        going.add(thread)

    def hold(thread):
        ptrace(INTERRUPT, thread)
        os.waitpid(thread, WALL)
        going.discard(thread)

    def made(thread):
        """The child, or the thread, that the thread has made; it waits."""
        child = ctypes.c_ulong()
        ptrace(GETEVENTMSG, thread, ctypes.addressof(child))
        os.waitpid(child.value, WALL)
        return child.value

    def stopped(thread, status):
        """Whether the first thread is held now."""
        event = status >> 16
        found = False
        if event == EVENT_CLONE:
            go_on(made(thread))
        elif event in (EVENT_FORK, EVENT_VFORK):
            child = made(thread)
            found = is_it()
            if found and thread != process:
                hold(process)
            ptrace(DETACH, child)
        if found:
            held_ones.update({process, thread})
        else:
            go_on(thread, None if event else os.WSTOPSIG(status))  # a signal it gets
        return found

    def wait():
        while True:
            for thread in tuple(going):
                got, status = os.waitpid(thread, WALL | os.WNOHANG)
                if not got:
                    continue
                going.discard(thread)
                if stopped(thread, status):
                    for other in held_ones - {process}:
                        ptrace(DETACH, other)
                    return
            time.sleep(0.001)

    try:
        yield wait
    finally:
        for thread in tuple(going):
            hold(thread)
            ptrace(DETACH, thread)
        if process in held_ones:
            ptrace(DETACH, process)
