"""A program on a terminal of its own, which a test types into and reads."""
import fcntl
import os
import pty
import struct
import termios
import threading

from drover import wait_until


class Terminal:
    def __init__(self, program, *words, env=None, cwd=None, rows=24, columns=80):
        self.text = ""
        ours, self.theirs = pty.openpty()  # theirs stays open: what it is set to can be read afterwards
        self.resize(rows, columns, self.theirs)
        self.before = termios.tcgetattr(self.theirs)
        self.fd = ours
        self.pid = os.fork()
        if self.pid == 0:
            os.close(ours)
            if cwd:
                os.chdir(cwd)
            os.setsid()
            fcntl.ioctl(self.theirs, termios.TIOCSCTTY, 0)
            for k in range(3):
                os.dup2(self.theirs, k)
            os.execve(program, [program, *words], {"TERM": "xterm", **(env or os.environ)})
        self.ending = False
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        self.code = None

    def _read(self):
        while True:
            try:
                more = os.read(self.fd, 65536)
            except OSError:
                return
            if not more:
                return
            self.text += more.decode(errors="replace")

    def type(self, text):
        os.write(self.fd, text.encode())

    def shows(self, words, seconds=60):
        """Waits until the words are there, and forgets what is up to them."""
        wait_until(lambda: words in self.text, seconds)
        self.text = self.text.split(words, 1)[1]

    def resize(self, rows, columns, fd=None):
        fcntl.ioctl(self.fd if fd is None else fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def is_as_before(self):
        return termios.tcgetattr(self.theirs) == self.before

    def end(self):
        """Its exit code, once it has ended."""
        if self.code is None:
            wait_until(self._has_ended, 60)
            os.close(self.theirs)
            self.reader.join()
            os.close(self.fd)
        return self.code

    def _has_ended(self):
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self.code = os.waitstatus_to_exitcode(status)
            self.was_restored = self.is_as_before()
        return pid != 0

    def kill(self, signal):
        os.kill(self.pid, signal)
