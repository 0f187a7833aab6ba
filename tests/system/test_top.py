"""drover top on a terminal: what it shows, what its keys do, and what it says when the server is gone."""
import fcntl
import os
import pty
import re
import signal
import struct
import termios
import threading

import pytest

from drover import sh, wait_until


class Screen:
    """`drover top` on a pseudo terminal; `text` is all that it has written, without the codes of the terminal."""

    def __init__(self, instance):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(instance.program("drover"), ["drover", "top"], {**instance.env, "TERM": "xterm", "LANG": "C.UTF-8"})
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        self.code = None

    def read(self):
        while True:
            try:
                more = os.read(self.fd, 65536)
            except OSError:
                return
            if not more:
                return
            self.text += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>78]", "", more.decode(errors="replace"))

    def keys(self, text):
        os.write(self.fd, text.encode())

    def shows(self, words, again=True):
        """Waits until the words are on the screen, which is drawn again and again (Ctrl-L), and forgets what it has shown."""

        def shown():
            if again:
                self.keys("\x0c")
            return words in self.text

        wait_until(shown, 60)
        self.text = ""

    def end(self):
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            self.reader.join()
            os.close(self.fd)
        return self.code


@pytest.fixture(name="screen")
def on_a_screen(drover):
    made = []

    def make():
        made.append(Screen(drover))
        return made[-1]

    yield make
    for one in made:
        if one.code is None:
            os.kill(one.pid, signal.SIGKILL)
            one.end()


def test_keys_do_what_they_say(drover, screen):
    first = drover.submit(sh("true", requirements="false", queue="queue 3"))
    second = drover.submit(sh("true", requirements="false"))
    top = screen()
    top.shows("2 requests, 4 jobs idle")
    listed = [r["id"] for r in drover.json("queue")["requests"]]
    other = first if listed[0] == second else second
    top.keys("h")
    drover.wait_state(f"{listed[0]}.0", "held")
    top.shows("held")
    top.keys("r")
    drover.wait_state(f"{listed[0]}.0", "idle")
    top.keys("jw")
    top.shows("any key goes back", again=False)
    top.keys("x")
    top.keys("d")
    top.shows("Remove request", again=False)
    top.keys("n")
    assert drover.job(f"{other}.0")["state"] == "idle"
    top.keys("dy")
    wait_until(lambda: [r["id"] for r in drover.json("queue")["requests"]] == [listed[0]])
    top.shows("1 request, ")
    top.keys("q")
    assert top.end() == 0


def test_places_and_problems(drover, screen):
    name = drover.agents()[0]["name"]
    drover.submit(sh("true", hold="true"))
    drover.cli("agents", "drain", name, "-r", "new disk")
    top = screen()
    for words in ("PROBLEMS", "new disk", "1 job held", "drained"):
        top.shows(words)
    top.keys("q")
    assert top.end() == 0


def test_a_server_that_goes_and_comes(drover, screen):
    """What was there stays on the screen, and a line says why nothing is new."""
    drover.submit(sh("true", requirements="false"))
    top = screen()
    top.shows("1 request, ")
    drover.daemons[0].stop(signal.SIGTERM)
    top.shows("erver")
    drover.up()
    drover.submit(sh("true", requirements="false"))
    top.shows("2 requests")
    top.keys("q")
    assert top.end() == 0


def test_it_is_for_a_terminal(drover):
    assert "drover queue" in drover.cli("top", code=2).err
