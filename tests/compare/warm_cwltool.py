"""cwltool without its start: a server that has it loaded, and forks for each call.

    warm_cwltool.py SOCKET

cwltool takes more than a second of processor before it looks at a tool: for its modules, and for the schemas of the language. write_program() makes
the program that stands in its place: it hands its arguments, folder, environment and streams to the server, and ends as cwltool did there. What is
left out is a check of the style of JavaScript, of which only warnings come."""
import gc
import json
import os
import signal
import socket
import sys

PROGRAM = """\
#!/usr/bin/python3 -ISB
import json, os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect({path!r})
call = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(s, [len(call).to_bytes(4, "big")], [0, 1, 2])
s.sendall(call)
sys.exit(s.recv(1)[0])
"""


def write_program(file, path):
    with open(file, "w", encoding="utf-8") as f:
        f.write(PROGRAM.format(path=path))
    os.chmod(file, 0o755)


def serve(connection):
    """Runs one call, in the process that was forked for it."""
    head, fds, *_ = socket.recv_fds(connection, 4, 3)
    with connection.makefile("rb") as f:
        argv, folder, environment = json.loads(f.read(int.from_bytes(head, "big")))
    for n, fd in enumerate(fds):
        os.dup2(fd, n)
        os.close(fd)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = argv
    code = cwltool.main.main(argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(bytes([code]))


def main():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    for version in ("v1.0", "v1.1", "v1.2"):
        cwltool.process.get_schema(version)
    cwltool.main.use_standard_schema = lambda version: None  # it would forget them
    cwltool.process.validate_js_expressions = lambda *args: None
    cwltool.main.versionstring()  # reads the metadata of all that it imports, once
    gc.freeze()
    listener.listen(100)
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            try:
                serve(connection)
            finally:
                os._exit(0)
        connection.close()


if __name__ == "__main__":
    import cwltool.main  # where the other users of this file need not have it
    import cwltool.process
    main()
