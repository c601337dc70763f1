"""The workflows of the repository: least permissions, no long-lived secret, and targets that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def load(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows" / name).read_text("utf-8"))
    return document


def steps(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in document["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_asks_for_little(path: Path) -> None:
    document = load(path.name)
    assert document["permissions"] == {"contents": "read"}
    assert "secrets." not in path.read_text("utf-8")
    for job in document["jobs"].values():
        assert job["timeout-minutes"] <= 90
    for step in steps(document):
        assert "@" in step.get("uses", "@"), "an action without a version"
        if step.get("uses", "").startswith("actions/checkout"):
            assert step["with"]["persist-credentials"] is False
            assert step["with"]["fetch-depth"] == 0, "the version comes from tags"
        assert "${{" not in step.get("run", ""), "text from outside must not become part of a script"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_targets_and_files_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    scripts = "\n".join(step.get("run", "") for step in steps(load(path.name)))
    assert set(re.findall(r"\bmake ([a-z-]+)", scripts)) <= targets
    assert all((ROOT / name).is_file() for name in re.findall(r"^\.\S+", scripts, re.MULTILINE))


def test_a_release_is_built_tested_attested_and_published_without_a_token() -> None:
    jobs = load("release.yml")["jobs"]
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})] == ["attest", "publish"]
    assert jobs["publish"]["environment"] == "release"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "build" in jobs["publish"]["needs"] and jobs["release"]["needs"] == "publish"
    used = [step.get("uses", "").partition("@")[0] for step in steps({"jobs": jobs})]
    assert {"actions/attest-build-provenance", "actions/attest-sbom", "pypa/gh-action-pypi-publish"} <= set(used)


def test_every_supported_python_is_tested() -> None:
    listed = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))
    jobs = load("ci.yml")["jobs"]
    tested = {
        step["with"]["python-version"] for step in jobs["all"]["steps"] if "python-version" in step.get("with", {})
    }
    assert tested | set(jobs["pythons"]["strategy"]["matrix"]["python"]) == set(listed)
