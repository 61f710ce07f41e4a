//! What the harness asks of the operating system. Both files have the same functions; everything
//! else in the crate is portable.
//!
//! `--cfg countersink_portable` selects the portable file on Linux too, so that it can be tested.

#[cfg(all(target_os = "linux", not(countersink_portable)))]
mod linux;
#[cfg(all(target_os = "linux", not(countersink_portable)))]
pub(crate) use linux::*;

#[cfg(not(all(target_os = "linux", not(countersink_portable))))]
mod portable;
#[cfg(not(all(target_os = "linux", not(countersink_portable))))]
pub(crate) use portable::*;

/// What the system counts of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// How often it lost its CPU though it wanted to run.
    pub(crate) involuntary: u64,
    /// How often it went to sleep.
    pub(crate) voluntary: u64,
    /// Page faults, with and without a disk.
    pub(crate) faults: u64,
}
