"""Which file system holds a file, from mount tables as hosts have them."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from engine.mounts import filesystem, network_share

TABLE = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw - proc proc rw
40 22 0:45 / /srv/share rw,relatime shared:20 - nfs4 nas:/export rw,vers=4.2
41 40 8:17 / /srv/share/local rw - xfs /dev/sdb1 rw
42 22 0:46 / /mnt/my\040files rw - cifs //nas/files rw
43 22 0:47 / /data rw master:3 - fuse.sshfs me@there: rw
44 22 0:48 / /twice rw - nfs nas:/old rw
45 22 8:33 / /twice rw - ext4 /dev/sdc1 rw
46 22 0:49 / /pod rw - overlay overlay rw,lowerdir=/a - b
a line that is none
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/midwatch/midwatch.sqlite3", "ext4"),
        ("/srv/share/midwatch.sqlite3", "nfs4"),
        ("/srv/share", "nfs4"),
        ("/srv/shared/midwatch.sqlite3", "ext4"),
        ("/srv/share/local/midwatch.sqlite3", "xfs"),
        ("/mnt/my files/midwatch.sqlite3", "cifs"),
        ("/data/midwatch.sqlite3", "fuse.sshfs"),
        ("/twice/midwatch.sqlite3", "ext4"),
        ("/pod/midwatch.sqlite3", "overlay"),
    ],
)
def test_the_deepest_mount_holds_the_file(path: str, kind: str) -> None:
    """A mount over a mount hides it, names may hold blanks, and a like name is another directory."""
    assert filesystem(PurePosixPath(path), TABLE) == kind


@pytest.mark.parametrize(("kind", "share"), [("nfs", True), ("cifs", True), ("ext4", False), ("9p", False)])
def test_shares_are_those_of_other_hosts(kind: str, share: bool) -> None:
    """NFS and its kin are shares (F-19); a disk that a virtual machine is given is none."""
    table = f"1 0 8:1 / / rw - {kind} source rw"
    assert network_share(PurePosixPath("/x"), table) == (kind if share else None)


def test_without_a_table_nothing_is_known() -> None:
    """On a system without /proc the pragmas must tell."""
    assert network_share(PurePosixPath("/x"), "") is None
