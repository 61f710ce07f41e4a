//! Linux.

mod directory;
mod file;
mod find;
mod life;
mod lock;
mod maps;
mod mounts;
mod process;

use std::io;
use std::time::Duration;

use super::Opened;

pub(in crate::reader) use directory::{files_in, prune};
pub(in crate::reader) use file::{Holder, attach, open_descriptor, open_file, state};
pub(in crate::reader) use find::{find, of_process};
pub(in crate::reader) use life::{boot, life};

/// `CLOCK_MONOTONIC`.
pub(in crate::reader) fn monotonic() -> Duration {
    Duration::from_nanos(crate::os::monotonic_time())
}

/// Whether an error means that what is read is not there any more.
pub(in crate::reader) fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// Takes a writer's lock.
#[cfg(test)]
pub(in crate::reader) fn lock_for_tests(file: &std::fs::File) -> bool {
    lock::try_lock(file).is_ok_and(|locked| locked)
}
