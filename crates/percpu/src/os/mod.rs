//! What differs between Linux and the rest: the choice of a mechanism, a thread's lane where no
//! section can run, and memory.
//!
//! Both files have the same functions.

#[cfg(all(target_os = "linux", not(countersink_portable)))]
mod linux;
#[cfg(all(target_os = "linux", not(countersink_portable)))]
pub(crate) use linux::*;

#[cfg(not(all(target_os = "linux", not(countersink_portable))))]
mod portable;
#[cfg(not(all(target_os = "linux", not(countersink_portable))))]
pub(crate) use portable::*;

/// Where a thread goes that found no lane in a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "not every system and architecture has each case")]
pub(crate) enum Place {
    /// Sections can run now: try again.
    Section,
    /// A locked operation on this CPU lane. Only where no section ever runs.
    LockedLane(u32),
    /// A locked operation on the shared lane.
    SharedLane,
}
