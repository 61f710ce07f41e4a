//! What differs between Linux and other systems: memory for a region, the clock, forks.

use core::ptr::NonNull;

use crate::layout::Layout;

#[cfg(all(target_os = "linux", not(countersink_portable)))]
mod linux;
#[cfg(all(target_os = "linux", not(countersink_portable)))]
pub(crate) use linux::*;

#[cfg(not(all(target_os = "linux", not(countersink_portable))))]
mod portable;
#[cfg(not(all(target_os = "linux", not(countersink_portable))))]
pub(crate) use portable::*;

/// Memory for a whole region, of which parts are opened as they are needed.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "not every system looks at each field")]
pub(crate) struct Memory {
    pub(crate) start: NonNull<u8>,
    pub(crate) layout: Layout,
    pub(crate) backing: Backing,
    /// Whether another process has filled in the header.
    pub(crate) joined: bool,
    /// The descriptor that readers find; never used again, but to close it at once.
    pub(crate) descriptor: i32,
    /// Its device and inode, by which the descriptor is known again.
    pub(crate) file: (u64, u64),
}

/// What the memory of a region is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "not every system has each case")]
pub(crate) enum Backing {
    Memfd,
    File,
    Private,
}

impl Backing {
    /// The number in the header.
    pub(crate) fn code(self) -> u32 {
        match self {
            Backing::Memfd => 1,
            Backing::File => 2,
            Backing::Private => 3,
        }
    }
}

/// What is known of the process when a region is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) pid: u32,
    pub(crate) uid: u32,
    pub(crate) start_time: u64,
    pub(crate) pid_namespace: u64,
    pub(crate) boot: [u8; 16],
    pub(crate) program: [u8; 64],
}

/// Why a region is not where it was to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "not every system has each case")]
pub(crate) enum Hindrance {
    /// Nothing hindered.
    None,
    /// An error number of the system.
    Error(i32),
    /// A resource limit leaves no room.
    Limit,
    /// The directory is not a directory, not ours, or others can write there.
    Directory,
    /// The region to join is none, or not one that this program can use.
    NotJoined,
    /// Not on this system.
    System,
}
