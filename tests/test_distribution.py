"""The tools that build and check the distributions: metadata, contents of archives, no network."""

import email
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mercer
from tools import build_metadata, check_dist, offline, smoke

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
BASE = "https://example.org/mercer"
PAGE = """# Title

[![badge](https://ci.example/b.svg)](https://ci.example) and [![local](b.svg)](docs/ci.md)

See [the tour](docs/tour.md#start), [below](#speed), [web](https://example.org/x) or <!-- c -->.

![A picture](docs/a.png)

```text
[code](docs/code.md)
```
"""


# --- long description and addresses --------------------------------------------------------------


def test_links_with_a_base_address():
    text = build_metadata.long_description(PAGE, BASE, "v1.0.0")
    assert "[![badge](https://ci.example/b.svg)](https://ci.example)" in text
    assert f"[![local]({BASE}/raw/v1.0.0/b.svg)]({BASE}/blob/v1.0.0/docs/ci.md)" in text
    assert f"[the tour]({BASE}/blob/v1.0.0/docs/tour.md#start)" in text
    assert f"[below]({BASE}/blob/v1.0.0/README.md#speed)" in text
    assert "[web](https://example.org/x)" in text
    assert f"![A picture]({BASE}/raw/v1.0.0/docs/a.png)" in text
    assert "```text\n[code](docs/code.md)\n```" in text


def test_links_without_a_base_address():
    text = build_metadata.long_description(PAGE, "", "v1.0.0")
    assert "[![badge](https://ci.example/b.svg)](https://ci.example) and \n" in text
    assert "See the tour, below, [web](https://example.org/x) or <!-- c -->.\n\n```text" in text
    assert "```text\n[code](docs/code.md)\n```" in text


@pytest.mark.parametrize("base", ["", BASE])
def test_the_readme_has_no_relative_links(base):
    fields = build_metadata.address_fields(base, README, "0.1.0")
    message = email.message_from_string(
        f"Version: 0.1.0\nDescription-Content-Type: text/markdown\n\n{fields['readme']['text']}"
    )
    assert list(check_dist.metadata_findings(message, "0.1.0")) == []
    message.set_payload(README)
    assert len(list(check_dist.metadata_findings(message, "0.1.0"))) > 20


def test_addresses_in_the_readme_lead_to_files():
    text = build_metadata.long_description(README, BASE, "v0.1.0")
    targets = re.findall(rf"{BASE}/(?:blob|raw)/v0\.1\.0/([^)#\s]+)", text)
    assert len(targets) > 20 and all((ROOT / target).exists() for target in targets)
    assert (
        f"![Kernel PCA of 1797 handwritten digits: scores of two components, and the explained "
        f"variance]({BASE}/raw/v0.1.0/docs/digits.png)" in text
    )


def test_project_urls():
    assert build_metadata.project_urls("", "v0.1.0") == {}
    urls = build_metadata.project_urls(BASE, "v0.1.0")
    assert urls["Homepage"] == BASE and urls["Issues"] == f"{BASE}/issues"
    assert urls["Changelog"] == f"{BASE}/blob/v0.1.0/CHANGELOG.md"
    assert build_metadata.tag_of("0.2.0.dev0") == "main"


@pytest.mark.parametrize("base", ["https://example.org/", "example.org/mercer", "http://a b", "x"])
def test_wrong_base_addresses(base):
    with pytest.raises(ValueError, match="without a slash at its end, such as"):
        build_metadata.address_fields(base, README, "0.1.0")


def test_the_base_address_is_set_in_one_place():
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    build_metadata.check_base(hook["base-url"])
    assert (ROOT / hook["path"]).is_file()
    assert {"readme", "urls"} <= set(PROJECT["project"]["dynamic"])


def test_classifiers_and_required_python():
    classifiers = PROJECT["project"]["classifiers"]
    versions = re.findall(r":: (3\.\d+)$", "\n".join(classifiers), re.M)
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"
    assert list(filter(re.compile("Development Status").match, classifiers)) == [
        "Development Status :: 4 - Beta"
    ]


# --- contents of the archives ----------------------------------------------------------------


def wheel_names():
    info = [f"mercer-1.0.dist-info/{name}" for name in check_dist.METADATA_FILES]
    return {*check_dist.package_files(), *info}


def found_in_wheel(names):
    return "\n".join(check_dist.wheel_findings(names, check_dist.package_files()))


def test_a_complete_wheel():
    names = wheel_names()
    assert found_in_wheel(names) == ""
    for part in ("py.typed", "__init__.pyi", "app/explorer/assets/view.js", "app/cli/report.html"):
        assert f"mercer/{part}" in names
        missing = f"wheel: mercer/{part} is missing"
        assert found_in_wheel(names - {f"mercer/{part}"}) == missing


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mercer/gram/__pycache__/x.nbi", "x.nbi has a type"),
        ("mercer/test_x.py", "mercer/test_x.py is not a file of the package"),
        ("tests/zoo.py", "unexpected files tests/zoo.py"),
        ("mercer/extra/a.py", "mercer/extra has no __init__.py"),
    ],
)
def test_surplus_files_in_a_wheel(name, message):
    assert message in found_in_wheel(wheel_names() | {name})


def test_a_wheel_without_metadata():
    names = {name for name in wheel_names() if not name.endswith("entry_points.txt")}
    assert "wheel: entry_points.txt is missing" in found_in_wheel(names)


def test_files_in_an_sdist():
    tracked = check_dist.SDIST_FILES - {"PKG-INFO"} | {"tests/a.py"}
    complete = tracked | {"PKG-INFO"}
    assert list(check_dist.sdist_findings(complete, tracked)) == []
    assert list(check_dist.sdist_findings(complete, None)) == []
    found = check_dist.sdist_findings(complete - {"tests/a.py"} | {"notes.txt"}, tracked)
    assert list(found) == [
        "sdist: tests/a.py is missing",
        "sdist: notes.txt is not a file of the repository",
    ]
    assert list(check_dist.sdist_findings(complete - {"LICENSE"} | {"a.nbc"}, None)) == [
        "sdist: LICENSE is missing",
        "sdist: a.nbc is a cache",
    ]


def test_files_that_every_sdist_contains_exist():
    assert [n for n in check_dist.SDIST_FILES - {"PKG-INFO"} if not (ROOT / n).is_file()] == []


def test_what_remains_before_a_release():
    assert check_dist.package_version() == mercer.__version__
    found = "\n".join(check_dist.release_findings("9.9.9.dev0"))
    assert "9.9.9.dev0 is a development version" in found
    assert "CHANGELOG.md has no section [9.9.9.dev0] with a date" in found
    assert "CITATION.cff does not have version 9.9.9.dev0" in found


def test_the_folder_must_contain_one_wheel_and_one_sdist(tmp_path):
    with pytest.raises(SystemExit, match="contains 0 wheels and 0 sdists; `make dist` builds"):
        check_dist.main(["--folder", str(tmp_path)])


@pytest.mark.long
def test_a_wheel_with_a_base_address(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name in ("README.md", "LICENSE", "tools/build_metadata.py"):
        (source / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    text, count = re.subn(r'^base-url = "[^"]*"', f'base-url = "{BASE}"', text, flags=re.M)
    assert count == 1
    (source / "pyproject.toml").write_text(text, "utf-8")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-qq", "-w", tmp_path, source]
    subprocess.run(command, check=True)
    contents = check_dist.wheel_contents(next(tmp_path.glob("*.whl")))
    assert found_in_wheel(contents) == ""
    metadata = next(text for name, text in contents.items() if name.endswith("METADATA"))
    message = email.message_from_bytes(metadata)
    assert list(check_dist.metadata_findings(message, mercer.__version__)) == []
    tag = build_metadata.tag_of(mercer.__version__)
    assert f"Changelog, {BASE}/blob/{tag}/CHANGELOG.md" in message.get_all("Project-URL")
    assert f"]({BASE}/raw/{tag}/docs/digits.png)" in message.get_payload()


# --- comparing results -------------------------------------------------------------------------


def test_differences_of_results_are_found():
    number = {"digest": "a", "shape": [2], "values": [1.0, 2.0]}
    other = number | {"digest": "b", "values": [1.0, 2.001]}
    text = number | {"digest": "c", "values": ["no", "yes"]}
    both = {"results": {"SVC": {"predict": text, "decision_function": number}}}
    log = []
    assert smoke.compare(both, both, 1e-6, log.append)
    changed = {"results": {"SVC": {"predict": text, "decision_function": other}}}
    assert smoke.compare(changed, both, 1e-2, log.append)
    assert not smoke.compare(changed, both, 1e-6, log.append)
    fewer = {"results": {"SVC": {"predict": text}}}
    assert not smoke.compare(fewer, both, 1e-6, log.append)
    assert "DIFFERENT SVC.decision_function: relative error 0.0005, limit 1e-06" in log
    assert "MISSING SVC.decision_function is only in the other file" in log
    assert not smoke.compare({"results": {}}, both, 1e-6, log.append)


# --- no network --------------------------------------------------------------------------------

CONNECT = """
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
print("loopback")
try:
    socket.create_connection(("192.0.2.1", 80), timeout=2)
except TimeoutError:
    print("network")
except OSError:
    print("refused")
"""


def network_namespace():
    return offline.namespace() if sys.platform == "linux" else None


@pytest.mark.parametrize("kind", ["guard", "namespace"])
def test_offline(kind, capfd):
    prefix = network_namespace() if kind == "namespace" else None
    if kind == "namespace" and prefix is None:
        pytest.skip("this system does not permit network namespaces")
    assert offline.run([sys.executable, "-c", CONNECT], prefix) == 0
    assert capfd.readouterr().out.split() == ["loopback", "refused"]
    assert offline.run([sys.executable, "-c", "raise SystemExit(3)"], prefix) == 3


def test_the_guard_refuses_names_of_other_computers(capfd):
    code = "import socket; socket.getaddrinfo('example.org', 80)"
    assert offline.run([sys.executable, "-c", code], None) == 1
    assert "ConnectionRefusedError: offline: example.org" in capfd.readouterr().err


# --- policies ----------------------------------------------------------------------------------


def test_the_citation_has_the_version_of_the_last_release():
    released = re.findall(
        r"^## \[(\d[\w.]*)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M
    )
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    version = re.findall(r"^version: (\S+)$", citation, re.M)
    date = re.findall(r'^date-released: "?([\d-]+)"?$', citation, re.M)
    assert [(*version, *date)] == released[:1]


def test_the_notes_of_the_version_exist():
    if "dev" in mercer.__version__:
        assert "## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    else:
        found = "\n".join(check_dist.release_findings(mercer.__version__))
        assert "CHANGELOG.md" not in found and "CITATION.cff" not in found
