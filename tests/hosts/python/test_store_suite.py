"""The requirements of every store, against the folder and against a store that somebody wrote."""

from collections import Counter
from pathlib import Path

import hopline
import pytest
import store_suite
from conftest import ROOT
from hopline._cli import node_folder
from memory_store import LeasedMemoryStore, Memory, Record

CASES = store_suite.cases(ROOT / "tests" / "store")
BEGIN_MS = 1_750_000_000_000


class Shop:
    """The part that the stores have in common: a clock."""

    can: set[str] = set()

    def __init__(self, folder: Path) -> None:
        self.now_ms = BEGIN_MS
        self.folder = folder

    def die(self, client: hopline.Store) -> None:
        """The client is dropped, and not closed."""

    def end_claims(self, client: hopline.Store) -> None:
        raise AssertionError("claims last as long as their owner")


class Folder(Shop):
    can = {"damage", "dies"}

    def open(self) -> hopline.Store:
        return hopline.FolderStore(self.folder, clock=lambda: self.now_ms / 1000)

    def damage(self, name: str, how: str) -> None:
        [path] = self.folder.joinpath("names").rglob(name)
        data = path.read_bytes()
        path.write_bytes({"cut": data[: len(data) // 2], "empty": b"", "garbage": b"\xff" * len(data)}[how])

    def die_in_put(self, client: hopline.Store, name: str, data: bytes) -> None:
        # The files that are left where the draft was not written whole; `test_crash.py` kills real processes.
        self.folder.joinpath("drafts", f"{name}.0").write_bytes(data[: len(data) // 2])


class FolderOfNode(Shop):
    """The format of Node, which the command `hopline` opens."""

    can = {"damage", "dies"}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for part in ("owners", "claims", "open", "kept", "until", "days"):
            folder.joinpath(part).mkdir(parents=True)
        folder.joinpath("format").write_text(node_folder.FORMAT)

    def open(self) -> hopline.Store:
        return node_folder.NodeFolder(str(self.folder), clock=lambda: self.now_ms / 1000)

    def damage(self, name: str, how: str) -> None:
        for part in ("open", "kept"):
            path = self.folder / part / name
            if path.exists():
                data = path.read_bytes()
                path.write_bytes({"cut": data[: len(data) // 2], "empty": b"", "garbage": b"\xff" * len(data)}[how])

    def die_in_put(self, client: hopline.Store, name: str, data: bytes) -> None:
        [owner] = self.folder.joinpath("owners").iterdir()
        owner.joinpath(name).write_bytes(data[: len(data) // 2])
        self.die(client)

    def die(self, client: hopline.Store) -> None:
        # The system closes the socket of a process that is killed, and leaves all files.
        assert isinstance(client, node_folder.NodeFolder) and client._owner is not None
        client._owner._server.close()


class OwnStore(Shop):
    can = {"damage", "dies", "leases"}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.memory = Memory(lambda: self.now_ms / 1000)

    def open(self) -> hopline.Store:
        return LeasedMemoryStore(self.memory)

    def damage(self, name: str, how: str) -> None:
        self.memory.records[name] = Record(b"damaged", None)

    def die_in_put(self, client: hopline.Store, name: str, data: bytes) -> None:
        client.close()

    def die(self, client: hopline.Store) -> None:
        # Nothing tells this store that a client was dropped; a client of Hopline closes it then.
        client.close()

    def end_claims(self, client: hopline.Store) -> None:
        assert isinstance(client, LeasedMemoryStore)
        client.end_claims()


@pytest.mark.parametrize("kind", [Folder, FolderOfNode, OwnStore])
@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[name for name, _ in CASES])
def test_a_store_does_what_every_store_must(case: store_suite.Json, kind: type[Folder] | type[FolderOfNode] | type[OwnStore], tmp_path: Path) -> None:
    if not set(case.get("needs", [])) <= kind.can:
        return  # counted below
    store_suite.run(case, kind(tmp_path / "store"))


def test_what_is_left_out_is_known() -> None:
    left_out = {kind.__name__: Counter(need for _, case in CASES for need in case.get("needs", []) if need not in kind.can) for kind in (Folder, FolderOfNode, OwnStore)}
    assert left_out == {"Folder": {"leases": 6}, "FolderOfNode": {"leases": 6}, "OwnStore": {}}
    assert {need for _, case in CASES for need in case.get("needs", [])} == {"damage", "dies", "leases"}
