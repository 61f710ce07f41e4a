//! Which file system a descriptor is on, without asking that file system.

use std::fs;
use std::os::fd::{AsFd, RawFd};
use std::path::PathBuf;

use rustix::fs::{AtFlags, StatxFlags, makedev, statx};

/// File systems of the kernel's own, which do not wait for a program or a server.
const LOCAL: [&str; 14] = [
    "bcachefs", "btrfs", "devtmpfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "overlay",
    "ramfs", "tmpfs", "xfs", "zfs",
];

/// Whether a file system answers whatever others do.
pub(super) fn answers(kind: &str) -> bool {
    LOCAL.contains(&kind)
}

/// The kind of file system that a descriptor of this process is on, by the first of the tables of
/// mounts that has its mount; `None` if none has.
pub(super) fn file_system(descriptor: RawFd, tables: &[PathBuf]) -> Option<String> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).ok()?;
    let mount = info
        .lines()
        .find_map(|line| line.strip_prefix("mnt_id:"))?
        .trim();
    tables.iter().find_map(|table| {
        let table = fs::read(table).ok()?;
        let table = String::from_utf8_lossy(&table);
        let line = table
            .lines()
            .find(|line| line.split(' ').next() == Some(mount))?;
        // Behind fields of any number, which a dash ends.
        let kind = line.split_once(" - ")?.1.split(' ').next()?;
        Some(kind.to_owned())
    })
}

/// The device of a descriptor as the kernel has it.
pub(super) fn cached_device(descriptor: impl AsFd) -> Option<u64> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let status = statx(descriptor, c"", flags, StatxFlags::BASIC_STATS).ok()?;
    Some(makedev(status.stx_dev_major, status.stx_dev_minor))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_file_is_on_the_file_system_of_its_mount() {
        let file = fs::File::open("/proc/self/stat").expect("a file");
        let tables = [
            PathBuf::from("/missing"),
            PathBuf::from("/proc/self/mountinfo"),
        ];
        let kind = file_system(file.as_raw_fd(), &tables);
        assert_eq!(kind.as_deref(), Some("proc"));
        assert!(!answers("proc") && !answers("fuse.sshfs") && !answers("nfs4"));
        assert!(answers("tmpfs") && answers("ext4"));
        assert_eq!(file_system(file.as_raw_fd(), &tables[..1]), None);
    }
}
