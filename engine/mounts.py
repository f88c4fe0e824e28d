"""Is a file on a network share? Read from the mount table, as Linux writes it.

Pure: is given the text of /proc/self/mountinfo, and never looks at a disk.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

NETWORK: Final = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre", "beegfs", "gpfs"),
        *("ocfs2", "gfs2", "davfs", "ncpfs"),
        *("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "fuse.davfs", "fuse.nfs"),
    }
)


def network_share(path: PurePosixPath, mountinfo: str) -> str | None:
    """The kind of share that holds the absolute `path`; None when it is a disk of this host."""
    kind = filesystem(path, mountinfo)
    return kind if kind in NETWORK else None


def filesystem(path: PurePosixPath, mountinfo: str) -> str:
    """The kind of file system that holds `path`: of the deepest mount above it, the last one counts."""
    depth, kind = -1, ""
    for line in mountinfo.splitlines():
        # 36 35 98:0 /root /mount/point options [optional fields …] - kind source options
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if len(fields) < 5 or not kinds:
            continue
        point = PurePosixPath(_plain(fields[4]))
        if path.is_relative_to(point) and len(point.parts) >= depth:
            depth, kind = len(point.parts), kinds[0]
    return kind


def _plain(field: str) -> str:
    """Blanks and the like are written as octal."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), field)
