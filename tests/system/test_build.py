"""What the build makes."""
import json
import os
import subprocess


def test_all_that_is_installed_is_built(build):
    """`make build` makes the target programs; `make install` and the packages install without building."""
    targets = json.loads(subprocess.run(["meson", "introspect", build, "--targets"], stdout=subprocess.PIPE, check=True).stdout)
    made = set(subprocess.run(["ninja", "-C", build, "-t", "query", "programs"], stdout=subprocess.PIPE, text=True, check=True).stdout.split())
    installed = [os.path.relpath(name, build) for t in targets if t["installed"] for name in t["filename"]]
    assert "src/server/droverd" in installed and "src/cli/drover" in made
    assert [name for name in installed if name not in made] == []
