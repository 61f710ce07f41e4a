//! What differs between Linux and other systems: files, locks, processes.
//!
//! Both have the same functions.

use super::source::Source;

#[cfg(all(target_os = "linux", not(countersink_portable)))]
mod linux;
#[cfg(all(target_os = "linux", not(countersink_portable)))]
pub(super) use linux::*;

#[cfg(not(all(target_os = "linux", not(countersink_portable))))]
mod portable;
#[cfg(not(all(target_os = "linux", not(countersink_portable))))]
pub(super) use portable::*;

/// A file that was opened.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) source: Box<dyn Source>,
    /// Device and inode.
    pub(super) id: Option<(u64, u64)>,
    pub(super) holder: Holder,
}
