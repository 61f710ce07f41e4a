//! Linux: memfds and files that other processes can read.
//!
//! All of this runs at the first use of a counter, which may be in a signal handler: no locks, no
//! allocation, nothing that changes `errno`.

mod environment;
mod file;
mod fork;
mod identity;
mod join;
mod memfd;
mod memory;
mod unshare;

pub(crate) use environment::{Setting, setting};
pub(crate) use file::create as create_file;
pub(crate) use fork::{at_fork, forks};
pub(crate) use identity::{identity, real_time, uses_tsc_clock_source};
pub(crate) use join::join;
pub(crate) use memfd::create as create_memfd;
pub(crate) use memory::{abandon, open_part, page, private};
pub(crate) use unshare::replace;
