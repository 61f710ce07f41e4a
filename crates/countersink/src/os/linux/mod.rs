//! Linux: memfds and files that other processes can read.
//!
//! All of this runs at the first use of a counter, which may be in a signal handler: no locks, no
//! allocation, nothing that changes `errno`.
#![allow(unsafe_code)]

mod environment;
mod file;
mod fork;
mod identity;
mod join;
mod memfd;
mod memory;
mod time;
mod unshare;

use rustix::io::Errno;

pub(crate) use environment::{Setting, setting};
pub(crate) use file::{create as create_file, remove as remove_file};
pub(crate) use fork::{Gate, forks};
pub(crate) use identity::{identity, uses_tsc_clock_source};
pub(crate) use join::join;
pub(crate) use memfd::create as create_memfd;
pub(crate) use memory::{abandon, clear_private, open_part, page, private};
#[cfg(target_arch = "x86_64")]
pub(crate) use time::may_read_cycles;
pub(crate) use time::{current_cpu, monotonic_time, real_time};
pub(crate) use unshare::replace;

/// A call by the C library, which tells errors by -1 and `errno`; that stays what it was.
fn keeping_errno<T: Into<i64>>(call: impl FnOnce() -> T) -> Result<i64, Errno> {
    // SAFETY: this thread's own number.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        match call().into() {
            -1 => Err(Errno::from_raw_os_error(errno.replace(before))),
            result => Ok(result),
        }
    }
}
