"""The files for containers, clusters and services: linters accept them, our command line their commands."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.command_check import UsageError, parse_arguments
from support.page import ROOT

DEPLOY = ROOT / "deploy"
BIN = Path(sys.executable).parent


def _accepted(*command: str | Path) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def _nodes(command: list[str]) -> dict[str, Any]:
    given = parse_arguments(command)
    assert given["group"] == "tickets"
    assert given["founders"] == 3
    return given


def test_yaml_files_are_tidy() -> None:
    assert _accepted(BIN / "yamllint", "--strict", "deploy") == ""


def test_the_image_follows_the_rules_and_runs_our_command() -> None:
    if (BIN / "hadolint").exists():  # there is none for every platform
        assert _accepted(BIN / "hadolint", "deploy/Dockerfile") == ""
    text = (DEPLOY / "Dockerfile").read_text()
    assert json.loads(re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)[0]) == ["priocast"]
    assert parse_arguments(json.loads(re.findall(r"^CMD (.*)$", text, re.MULTILINE)[0])) == {}


def test_the_services_of_compose_are_three_members_and_a_client() -> None:
    schema = ("--builtin-schema", "vendor.compose-spec")
    assert "ok" in _accepted(BIN / "check-jsonschema", *schema, "deploy/compose.yaml")
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    client = parse_arguments(services.pop("client")["command"])
    assert (client["group"], client["priority"]) == ("tickets", "urgent")
    members = {name: _nodes(service["command"]) for name, service in services.items()}
    assert {name: given["member"] for name, given in members.items()} == {name: name for name in "abc"}
    for service, given in zip(services.values(), members.values(), strict=True):
        assert given["peer"] == [f"dns:{service['networks']['group']['aliases'][0]}:7401"]


def test_the_pods_of_kubernetes_are_as_many_members_as_found_the_group() -> None:
    _accepted(BIN / "kubernetes-validate", "--strict", "deploy/kubernetes.yaml")
    by_kind = {each["kind"]: each for each in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())}
    service, pods = by_kind["Service"], by_kind["StatefulSet"]
    [container] = pods["spec"]["template"]["spec"]["containers"]
    given = _nodes(container["args"])
    assert pods["spec"]["replicas"] == given["founders"]
    [port] = service["spec"]["ports"]
    assert given["peer"] == [f"dns:{service['metadata']['name']}:{port['port']}"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == pods["spec"]["selector"]["matchLabels"]
    program, *probe = container["readinessProbe"]["exec"]["command"]
    assert program == "priocast"
    assert parse_arguments(probe)
    mounted = {each["mountPath"] for each in container["volumeMounts"]}
    assert str(given["state_directory"]) in mounted


def test_the_service_of_systemd_is_understood(tmp_path: Path) -> None:
    text = (DEPLOY / "priocast@.service").read_text()
    commands = [shlex.split(each) for each in re.findall(r"^ExecStart\w*=(.*)$", text, re.MULTILINE)]
    assert len(commands) == 2
    for program, *arguments in commands:
        assert program == "/usr/bin/priocast"
        assert str(parse_arguments(arguments)["config"]) == "/etc/priocast/%i.toml"
    if shutil.which("systemd-analyze"):
        (tmp_path / "priocast@.service").write_text(text.replace("/usr/bin/priocast", str(BIN / "priocast")))
        assert _accepted("systemd-analyze", "verify", tmp_path / "priocast@.service") == ""


@pytest.mark.parametrize(
    "change", [("--member", "--members"), ("tickets", "tickets extra"), ("--founders", "--founder-count")]
)
def test_a_wrong_command_is_found(change: tuple[str, str]) -> None:
    container = "node tickets --member a --listen 0.0.0.0:7401 --peer dns:priocast:7401 --founders 3"
    assert _nodes(container.split())
    with pytest.raises(UsageError):
        _nodes(container.replace(*change).split())
