"""Outputs by pattern: transfer_output_files = *.root."""
import os

SCRIPT = "-c 'touch -d @1 old; echo 1 >a.root; echo 2 >b.root; mkdir sub; echo 3 >sub/c.txt; echo 4 >sub/d.root; echo 5 >other'"


def test_patterns_come_back(instance):
    instance.up()
    instance.write("in.root", "input")
    os.mkdir(os.path.join(instance.work, "logs"))
    instance.run(f"executable = /bin/sh\narguments = \"{SCRIPT}\"\ntransfer_input_files = in.root\n"
                 "transfer_output_files = *.root, sub/*.txt\ntransfer_output_remaps = \"sub/*=logs/;b.root=second\"\nqueue\n")
    assert instance.read("a.root") == "1\n" and instance.read("second") == "2\n" and instance.read("logs/c.txt") == "3\n"
    assert instance.read("in.root") == "input"
    assert sorted(os.listdir(instance.work)) == ["a.root", "in.root", "logs", "second"]


def test_a_pattern_of_nothing_holds_the_job(instance):
    instance.up()
    request = instance.submit("executable = /bin/true\ntransfer_output_files = *.root\nqueue\n")
    instance.wait_state(f"{request}.0", "held")
    assert "called like *.root" in instance.job(f"{request}.0")["hold_reason"]


def test_through_the_spool(instance):
    """Sent to the server, as where paths mean something else: drover get brings them."""
    instance.up()
    instance.write("in.root", "input")
    request = instance.submit(f"executable = /bin/sh\narguments = \"{SCRIPT}\"\nshould_transfer_files = YES\n"
                              "transfer_executable = false\ntransfer_input_files = in.root\n"
                              "transfer_output_files = ?.root, s*/c.*\nqueue\n")
    instance.wait(request)
    files = {f["name"] for f in instance.api("GET", f"/v1/jobs/{request}.0/files")["files"]}
    assert {"a.root", "b.root", "c.txt"} <= files and not files & {"other", "in.root", "old", "d.root"}, files
