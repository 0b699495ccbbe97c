"""The token of an admin endpoint: for the user that runs the node only."""

import logging
import stat
from pathlib import Path

import pytest

from priocast.core.errors import InvalidInput, InvalidOption
from priocast.network.address import Address
from priocast.operations.order_change import request_order_change
from priocast.runtime.admin.endpoint import Admin
from priocast.runtime.admin.order_request import OrderChangeRequest
from priocast.runtime.admin.token_file import RUN_DIRECTORY, TokenFile, read_token, token_path
from priocast.testing.addresses import free_addresses
from support.nodes import nodes
from support.waiting import run

ADDRESS = Address("127.0.0.1", 9401)


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for token files."""
    monkeypatch.setenv(RUN_DIRECTORY, str(tmp_path / "run"))
    return tmp_path / "run"


def test_the_file_is_private_and_removed_at_the_end(directory: Path) -> None:
    made = TokenFile(ADDRESS)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert read_token(ADDRESS) == read_token(Address("localhost", 9401)) == made.token
    made.remove()
    made.remove()
    assert not list(directory.iterdir())


def test_the_file_of_a_later_process_is_left_alone() -> None:
    first, second = TokenFile(ADDRESS), TokenFile(ADDRESS)
    assert first.token != second.token
    first.remove()
    assert read_token(ADDRESS) == second.token


def test_a_node_that_listens_everywhere_is_found() -> None:
    made = TokenFile(Address("0.0.0.0", 9401))  # noqa: S104 - nothing listens in this test
    assert read_token(ADDRESS) == made.token


def test_a_token_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    TokenFile(ADDRESS).path.chmod(0o644)
    with pytest.raises(InvalidInput, match="permissions 0644"):
        read_token(ADDRESS)
    with pytest.raises(InvalidInput, match=r"nowhere: No such file.*as the user that runs the node"):
        read_token(ADDRESS, tmp_path / "nowhere")


def test_a_directory_that_others_can_write_is_rejected(directory: Path) -> None:
    directory.mkdir()
    directory.chmod(0o777)
    with pytest.raises(InvalidOption, match=f"name another one in {RUN_DIRECTORY}"):
        TokenFile(ADDRESS)
    directory.rmdir()
    elsewhere = directory.with_name("elsewhere")
    elsewhere.mkdir()
    directory.symlink_to(elsewhere)
    with pytest.raises(InvalidOption, match="is not a directory that only this user can write"):
        TokenFile(ADDRESS)


def test_without_a_token_file_the_node_runs_and_nothing_can_be_changed(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory.mkdir()
    directory.chmod(0o777)

    async def test() -> None:
        [address] = free_addresses(1)
        async with nodes(1, "tickets") as (node,), Admin(node, str(address)):
            assert "the order cannot be changed over the admin endpoint" in caplog.text
            chosen = token_path(address)
            chosen.touch(0o600)
            change = OrderChangeRequest(group="tickets", order="causal-history")
            with pytest.raises(InvalidInput, match="needs the token"):
                await request_order_change(str(address), change)

    with caplog.at_level(logging.WARNING, "priocast"):
        run(test)
