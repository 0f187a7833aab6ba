"""Submit files mean here what they mean to HTCondor: jobs that condor_submit -dry-run once made of tests/compare/submit, and Drover's."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "compare"))

import submits  # noqa: E402  (the path must be there first)


def test_jobs_of_submit_files_are_those_of_htcondor(build):
    with submits.Folder() as folder:
        found = list(submits.differing(build, folder, submits.recorded(folder)))
    assert [one[:4] for one in found if one[4] is None] == []
    # What is known is still so: a reason that nothing needs any more has to go.
    used = {reason for *_, reason in found}
    known = submits.answers.Known()
    assert {known.file[name]["because"] for name in known.file.sections() if name.startswith("submit ")} == used
