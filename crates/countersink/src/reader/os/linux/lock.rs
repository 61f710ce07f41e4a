//! Locks of open file descriptions (OFD): every process that counts in a file holds a read lock on all of
//! it while it lives.
//!
//! They are asked for by libc, since rustix has only those of processes.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A lock on a whole file.
fn whole(kind: libc::c_int) -> libc::flock {
    libc::flock {
        // Three constants below 3.
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

/// Whether someone else has a lock. Takes none, so that it keeps no writer from starting.
pub(super) fn is_locked(file: &File) -> io::Result<bool> {
    let mut lock = whole(libc::F_WRLCK);
    // SAFETY: the call writes to a lock, which is there.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(libc::c_int::from(lock.l_type) != libc::F_UNLCK),
    }
}

/// Takes the write lock, if nobody else has a lock. It goes when the file is closed.
pub(super) fn try_lock(file: &File) -> io::Result<bool> {
    let lock = whole(libc::F_WRLCK);
    // SAFETY: the call reads a lock, which is there.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) } {
        -1 => match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
            error => Err(error),
        },
        _ => Ok(true),
    }
}
