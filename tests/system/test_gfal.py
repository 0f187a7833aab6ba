"""The mover for gsiftp:// by libgfal2, on a real GridFTP server. Both are in a network of their own, without any name service: Globus
looks up the names of all addresses of its machine."""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SETUP = """\
set -e
ip link set lo up
ip link add null0 type bridge; ip addr add 10.255.0.1/32 dev null0; ip link set null0 up
mount --make-rprivate /
printf '127.0.0.1 localhost %s\\n' "$(hostname)" >{folder}/hosts; : >{folder}/resolv
sed 's/^hosts:.*/hosts: files/' /etc/nsswitch.conf >{folder}/nsswitch
mount --bind {folder}/hosts /etc/hosts; mount --bind {folder}/resolv /etc/resolv.conf; mount --bind {folder}/nsswitch /etc/nsswitch.conf
exec {python} {script} {build} {folder}
"""


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace is made")
def test_gridftp(pytestconfig):
    build = os.path.abspath(pytestconfig.getoption("--build"))
    with tempfile.TemporaryDirectory(prefix="drover-test-") as folder:
        os.chmod(folder, 0o755)
        script = SETUP.format(folder=folder, python="/usr/bin/python3", script=os.path.abspath(__file__), build=build)
        p = subprocess.run(["unshare", "-n", "-m", "--propagation", "slave", "sh", "-c", script], capture_output=True, text=True, timeout=300,
                           check=False)
    assert p.returncode == 0 and "all is well" in p.stdout, p.stdout + p.stderr


def inside(build, folder):
    """In the namespace."""
    sys.path.insert(0, HERE)
    from drover import free_port  # pylint: disable=import-outside-toplevel
    from guarded import Authority  # pylint: disable=import-outside-toplevel
    from stores import Nginx, Server  # pylint: disable=import-outside-toplevel

    authority = Authority(os.path.join(folder, "authority"), "rsa")
    cert, key = authority.issue("localhost")
    known_as = subprocess.run(["openssl", "x509", "-in", authority.file, "-noout", "-hash"], check=True, capture_output=True,
                              text=True).stdout.strip()
    trusted, grid, port = os.path.join(folder, "trusted"), os.path.join(folder, "grid"), free_port()
    for path in (trusted, grid, os.path.join(grid, "data")):
        os.mkdir(path)
    shutil.copy(authority.file, os.path.join(trusted, known_as + ".0"))
    with open(os.path.join(trusted, known_as + ".signing_policy"), "w", encoding="ascii") as f:
        f.write("access_id_CA X509 '/CN=authority'\npos_rights globus CA:sign\ncond_subjects globus '\"/CN=*\"'\n")
    with open(os.path.join(grid, "map"), "w", encoding="ascii") as f:
        f.write('"/CN=ann" nobody\n')
    with open(os.path.join(grid, "conf"), "w", encoding="ascii"):
        pass
    for path in (cert, key):
        shutil.copy(path, grid)
    shutil.chown(grid, "nobody")
    for name in os.listdir(grid):
        shutil.chown(os.path.join(grid, name), "nobody")
    with open(os.path.join(folder, "proxy"), "w", encoding="ascii") as f:
        os.chmod(f.fileno(), 0o600)
        f.write(authority.proxy("ann"))
    os.environ["X509_CERT_DIR"] = trusted
    os.environ["GLOBUS_HOSTNAME"] = "localhost"
    own = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "env", f"HOME={grid}",
           f"X509_USER_CERT={grid}/{os.path.basename(cert)}", f"X509_USER_KEY={grid}/{os.path.basename(key)}", f"GRIDMAP={grid}/map"]
    server = Server(grid, ["globus-gridftp-server", "-s", "-p", str(port), "-control-interface", "127.0.0.1", "-data-interface", "127.0.0.1",
                           "-hostname", "127.0.0.1", "-allow-disabled-login", "-home-dir", grid, "-c", os.path.join(grid, "conf")],
                    "127.0.0.1", port, own).wait()
    web = Nginx(os.path.join(folder, "web")).wait()
    url = f"gsiftp://localhost:{port}{grid}/data/"
    program = os.path.join(HERE, "..", "..", "dist", "movers", "gfal")

    def place(*words, code=0, shown=True):
        credential = [f"credential=proxy\t{folder}/proxy\t{url}"] if shown else []
        p = subprocess.run([os.path.join(build, "bin", "drover-mover"), "--retry", "50", "--exec", f"gsiftp={os.path.abspath(program)}", "place",
                            *words, "tries=2", *credential], capture_output=True, text=True, timeout=120, check=False, cwd=folder)
        assert p.returncode == code, (words, p.returncode, p.stdout, p.stderr)
        return json.loads(p.stdout.strip().splitlines()[-1]), p.stderr

    def here(name):
        with open(os.path.join(grid, "data", name), "rb") as f:
            return f.read()

    bytes_ = os.urandom(8 << 20)
    said, _ = place("transfer", web.put("f", bytes_), url + "new/f")
    assert here("new/f") == bytes_ and said["sha256"] == hashlib.sha256(bytes_).hexdigest()
    place("transfer", url + "new/f", web.url + "back", "verify=read")
    assert web.read("back") == bytes_
    web.put("f", b"another")
    place("transfer", web.url + "f", url + "new/f")
    assert here("new/f") == b"another"
    said, _ = place("transfer", url + "new/f", url + "third/f")  # from GridFTP to GridFTP
    assert said["third_party"] and here("third/f") == b"another"
    place("rm", url + "third/f")
    os.rmdir(os.path.join(grid, "data", "third"))
    place("transfer", url + "none", web.url + "none", code=1)
    place("transfer", web.url + "f", url + "wrong", "checksum=adler32:1", code=75)
    _, why = place("transfer", url + "new/f", web.url + "stolen", shown=False, code=1)
    assert "cannot fetch" in why and not os.path.exists(os.path.join(web.data, "stolen"))
    place("mkdir", url + "m/n")
    place("mkdir", url + "m/n")
    for _ in range(2):
        place("rm", url + "new/f")
    assert sorted(os.listdir(os.path.join(grid, "data"))) == ["m", "new"] and os.listdir(os.path.join(grid, "data", "new")) == []
    web.stop()
    server.stop()
    print("all is well")


if __name__ == "__main__":
    inside(sys.argv[1], sys.argv[2])
