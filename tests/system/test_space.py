"""The space of stores: what does not fit waits, lots are reserved, used and released, and a store's own word counts."""
import os

import agents
import pytest
from drover import wait_until
from guarded import Authority, Grid
from stores import Ftp, Nginx
from test_transfer import QUICK, data, left, served

MIB = 1 << 20


@pytest.fixture
def place(instance, tmp_path):
    """A store `dav` of 10 MiB, whose files are taken to have 4, a store `xrd` as large as anything, and FTP to read from."""
    path = tmp_path
    while str(path) != "/tmp":  # servers that become users of their own reach it
        os.chmod(path, 0o755)
        path = path.parent
    authority = Authority(str(tmp_path / "authority"))
    with served(Nginx(str(tmp_path / "web"))) as web, served(Ftp(str(tmp_path / "ftp"))) as ftp, served(Grid(str(tmp_path / "grid"), authority)) as grid:
        os.makedirs(instance.dir, mode=0o700, exist_ok=True)
        with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
            f.write(f"stores:\n  dav:\n    urls: [{web.url}]\n    capacity: 10M\n    file_size: 4M\n"
                    f"  xrd:\n    urls: ['{grid.root}']\n    capacity: 100000T\n")
        instance.server()
        agents.start(instance, QUICK + f"ca_file: {authority.file}\nmovers:\n  root: xrootd\n")
        agents.offering(instance, "transfers")
        instance.web, instance.ftp, instance.grid = web, ftp, grid
        with open(os.path.join(ftp.data, "three"), "wb") as f:
            f.write(b"3" * (3 * MIB))
        yield instance


def space(instance, store="dav"):
    return next(s["space"] for s in instance.json("stores")["stores"] if s["name"] == store)


def lots(instance):
    return {x.get("name"): x["used_bytes"] for x in space(instance)["lots"]}


def test_what_does_not_fit_waits(place):
    """Until something is removed; the server's death in between changes nothing."""
    url = place.web.url
    for name in "abc":
        place.wait(place.submit(data(place.ftp.url + "three", url + name)))
    assert space(place)["files_bytes"] == 9 * MIB and space(place)["left_bytes"] == MIB
    waits = place.submit(data(place.ftp.url + "three", url + "d"))
    why = wait_until(lambda: (said := place.cli("why", f"{waits}.0")) and "waits for space in the store dav" in said and said)
    assert "it may write 4 MiB, and of the capacity of 10 MiB files have 9, lots 0 and running jobs 0" in why, why
    assert "dav: of 10M files have 9M, lots 0B, running jobs 0B; 1M are left" in place.cli("stores")
    program = place.submit(f'shell = echo x >o\ntransfer_output_files = o\ntransfer_output_remaps = "o={url}o"\ntransfer_output_size = 2M\nqueue\n')
    assert "waits for space in the store dav" in place.cli("why", f"{program}.0")
    fits = place.submit(data(place.ftp.url + "three", url + "e", transfer_output_size="1M", max_retry=0))  # it is not true
    place.wait(fits, code=1)
    assert "the job may write 1048576 in that store" in place.cli("tail", f"{fits}.0", "--stderr")
    place.kill_server()
    place.server()
    agents.offering(place, "transfers")
    assert space(place)["files_bytes"] == 9 * MIB and place.job(f"{waits}.0")["state"] == "idle"
    place.wait(place.submit(data(url + "a", dap_type="rm")))
    place.wait(waits)
    place.cli("stores", "--used", "dav=6M", "--owner", space(place)["lots"][0]["owner"])  # somebody else has tidied up
    place.wait(program)
    assert space(place)["files_bytes"] == 6 * MIB + 2 and place.web.read("o") == b"x\n"
    assert sorted(os.listdir(place.web.data)) == ["b", "c", "d", "o"] and left(place.web.data) == []


def test_outputs_are_no_more_than_claimed(place):
    request = place.submit(f'shell = head -c 3000000 /dev/zero >o\ntransfer_output_files = o\ntransfer_output_remaps = "o={place.web.url}o"\n'
                           "transfer_output_size = 1M\nqueue\n")
    wait_until(lambda: place.job(f"{request}.0")["state"] == "held")
    assert "transfer_output_size = 3M" in place.cli("why", f"{request}.0") and os.listdir(place.web.data) == []
    assert space(place)["claimed_bytes"] == space(place)["files_bytes"] == 0


def test_a_graph_in_a_lot(place):
    """Stage in, compute, stage out, clean up, release, over three protocols, in Stork's words; others have what is left."""
    url, ftp, xrd = place.web.url, place.ftp.url, place.grid.root
    place.write("reserve.dap", f'[ dap_type = "reserve"; dest_host = "{url}"; reserve_size = "7 MB"; duration = "2 hours"; reserve_id = 3; ]\n')
    place.write("in.dap", f'[ dap_type = "transfer"; src_url = "{ftp}three"; dest_url = "{url}in"; reserve_id = 3; ]\n')
    place.write("work.sub", f"""shell = wc -c <in >size
transfer_input_files = {url}in
transfer_output_files = size
transfer_output_remaps = "size={url}size"
transfer_output_size = 1M
reserve_id = 3
queue
""")
    place.write("out.dap", f'[ dap_type = "transfer"; src_url = "{url}size"; dest_url = "{xrd}size"; ]\n')
    place.write("clean.dap", f'[ dap_type = "rm"; src_url = "{url}in"; reserve_id = 3; ]\n')
    place.write("release.dap", f'[ dap_type = "release"; dest_host = "{url}"; reserve_id = 3; ]\n')
    nodes = "DATA Reserve reserve.dap\nDATA In in.dap\nJOB Work work.sub\nDATA Out out.dap\nDATA Clean clean.dap\n"
    arrows = "PARENT Reserve CHILD In\nPARENT In CHILD Work\nPARENT Work CHILD Out\nPARENT Out CHILD Clean\n"
    place.write("first.dag", nodes + arrows)
    place.write("whole.dag", nodes + "DATA Release release.dap\n" + arrows + "PARENT Clean CHILD Release\n")
    place.wait(place.json("dag", "submit", "first.dag")["id"])
    assert lots(place) == {"3": 8} and space(place)["reserved_bytes"] == 7 * MIB and space(place)["left_bytes"] == 3 * MIB
    others = place.submit(data(ftp + "three", url + "others"))  # 4 MiB are claimed
    assert "lots 7" in wait_until(lambda: (said := place.cli("why", f"{others}.0")) and "waits for space" in said and said)
    place.cli("stores", "--release", "dav/3")
    place.wait(others)
    wait_until(lambda: lots(place) == {None: 3 * MIB + 8})
    place.cli("stores", "--release", "dav/3", code=2)
    place.write("reserve.dap", place.read("reserve.dap").replace("7 MB", "6 MB"))  # 3 MiB and eight bytes are others'
    place.wait(place.json("dag", "submit", "whole.dag")["id"])
    assert place.grid.read("size") == b"%d\n" % (3 * MIB) and sorted(os.listdir(place.web.data)) == ["others", "size"]
    wait_until(lambda: lots(place) == {None: 3 * MIB + 16} and space(place)["reserved_bytes"] == 0)


def test_what_the_store_says(place):
    """XRootD knows how much is free; what is more than that waits, whatever the capacity says."""
    free = wait_until(lambda: space(place, "xrd").get("free_bytes"))
    assert 0 < free < 1 << 50
    waits = place.submit(data(place.ftp.url + "three", place.grid.root + "x", transfer_output_size="100T"))
    assert "The store itself says that" in wait_until(lambda: (said := place.cli("why", f"{waits}.0")) and "waits for space in the store xrd" in said and said)
    place.cli("rm", str(waits))
    place.wait(place.submit(data(place.ftp.url + "three", place.grid.root + "x", transfer_output_size="4M")))
    assert place.grid.read("x") == b"3" * (3 * MIB) and space(place, "xrd")["files_bytes"] == 3 * MIB


def test_wrong_words(place):
    url = place.web.url
    for more, why in (({"reserve_size": "1M"}, "needs reserve_id"), ({"reserve_id": "3"}, "needs reserve_size"),
                      ({"reserve_id": "a/b", "reserve_size": "1M"}, "the name of a lot has"), ({"reserve_id": "3", "reserve_size": "big"}, "is not a size"),
                      ({"reserve_id": "3", "reserve_size": "1M", "duration": "soon"}, "is not a time")):
        assert why in place.cli("submit", "-", stdin=data(url, dap_type="reserve", **more), code=1).err
    assert "the job writes to none" in place.cli("submit", "-", stdin=data(place.ftp.url, dap_type="release", reserve_id=3), code=1).err
    place.cli("stores", "--used", "dav=some", "--owner", "ann@local", code=2)
    assert "no store 'none'" in place.cli("stores", "--used", "none=1M", "--owner", "ann@local", code=2).err


def test_what_is_stored_is_paid_for(place):
    """A copy for its bytes, a lot for its size and time, and what is written into the lot no second time."""
    with open(os.path.join(place.dir, "droverd.yaml"), "a", encoding="utf-8") as f:
        f.write("bank:\n  rates:\n    - charge: 1 + BytesStored * max({StoredSeconds, 1})\n")
    place.daemons[0].stop()
    place.server()
    agents.offering(place, "transfers")
    place.cli("bank", "account", "lab", "--new", "--member", "*@local=user")
    place.cli("bank", "deposit", "lab", str(10 ** 12))
    source, url, lab = place.ftp.url + "three", place.web.url, {"accounting_group": "lab"}

    def charged():
        return [-m["amount"] for m in place.json("bank", "statement", "lab")["movements"] if m["what"] == "charge"]

    place.wait(place.submit(data(source, url + "a", **lab)))
    assert charged() == [1 + 3 * MIB]
    place.wait(place.submit(data(url, dap_type="reserve", reserve_size="6 MB", duration="2 hours", reserve_id="x", **lab)))
    assert charged()[1:] == [1 + 6 * MIB * 7200]
    place.wait(place.submit(data(source, url + "b", reserve_id="x", **lab)))
    place.wait(place.submit(data(url + "a", dap_type="rm", **lab)))
    assert charged()[2:] == [1, 1] and lots(place)["x"] == 3 * MIB
    missing = place.submit(data(place.ftp.url + "none", url + "c", transfer_output_size="1M", max_retry=0, **lab))
    place.wait(missing, code=1)
    assert charged()[4:] == [1] and place.json("bank", "balance", "lab")["held"] == 0
