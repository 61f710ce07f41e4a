//! Whether processes live, and are the ones they were.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::reader::model::Info;
use crate::reader::open::Life;

/// A process, told from others that get its number later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::reader) struct Process {
    /// Its directory in `/proc`.
    pub(super) directory: PathBuf,
    /// When it was started, in clock ticks since boot.
    pub(super) start_time: u64,
}

impl Process {
    /// The process that now has a directory. `None` where it is dead, waited for or not.
    pub(super) fn of(directory: PathBuf) -> Option<Self> {
        let start_time = start_time(&directory)?;
        Some(Process {
            directory,
            start_time,
        })
    }

    /// This one.
    pub(super) fn own() -> Option<Self> {
        Self::of(PathBuf::from("/proc/self"))
    }

    pub(super) fn is_alive(&self) -> bool {
        start_time(&self.directory) == Some(self.start_time)
    }
}

/// Field 22 of `stat`, unless the process is dead and its parent has not looked yet.
fn start_time(directory: &Path) -> Option<u64> {
    let stat = fs::read(directory.join("stat")).ok()?;
    // The program's name is in parentheses, and may hold some.
    let after = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(after + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    match fields.next()? {
        "Z" | "X" | "x" => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

pub(in crate::reader) fn life(info: &Info) -> Life {
    match boot() {
        Some(boot) if boot != info.boot => return Life::Dead,
        Some(_) => {}
        None => return Life::Unknown,
    }
    let namespace = fs::metadata("/proc/self/ns/pid").map(|namespace| namespace.ino());
    if !namespace.is_ok_and(|namespace| namespace == info.pid_namespace) {
        return Life::Unknown;
    }
    match start_time(&Path::new("/proc").join(info.pid.to_string())) {
        Some(start_time) if start_time == info.start_time => Life::Alive,
        Some(_) => Life::Reused,
        // Where /proc is mounted with hidepid, others' processes are not in it.
        None if is_hidden(info.pid) => Life::Unknown,
        None => Life::Dead,
    }
}

/// Whether there is such a process that is not ours.
fn is_hidden(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| matches!(test_kill_process(pid), Err(Errno::PERM)))
}

/// This boot.
pub(in crate::reader) fn boot() -> Option<[u8; 16]> {
    parse_boot(&fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?)
}

/// 32 digits, with dashes between some.
fn parse_boot(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|character| character.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    let pairs: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect();
    pairs.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_ids_are_sixteen_bytes() {
        let expected = [
            0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0, 1, 2, 3, 4, 5, 6, 0xff,
        ];
        assert_eq!(
            parse_boot("01234567-89ab-cdef-0001-0203040506ff\n"),
            Some(expected)
        );
        assert_eq!(parse_boot("0123"), None);
    }

    #[test]
    fn names_with_parentheses_do_not_hide_the_start_time() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let stat = |state: &str| {
            format!("7 (a) S 1 2) {state} 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 1234 22")
        };
        fs::write(directory.path().join("stat"), stat("R")).expect("written");
        assert_eq!(start_time(directory.path()), Some(1234));
        fs::write(directory.path().join("stat"), stat("Z")).expect("written");
        assert_eq!(start_time(directory.path()), None);
    }
}
