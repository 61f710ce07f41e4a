//! Systems other than Linux: every thread has a lane for itself, or shares it with few others.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;

use super::Place;
use crate::mechanism::{Choice, Mechanism, Reason};
use crate::segment::STRIDE;

/// More lanes than threads that run at once bring nothing.
const MOST_LANES: usize = 64;

/// How many CPUs this process can use.
pub(crate) fn online_cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// Which CPU this thread is on is not known here.
pub(crate) fn current_cpu() -> Option<u32> {
    None
}

/// What this process can have.
pub(crate) fn decide(request: Option<Mechanism>) -> Choice {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    Choice {
        mechanism: Mechanism::ThreadLanes,
        reason: match request {
            Some(Mechanism::ThreadLanes) => Reason::Requested,
            _ if cfg!(target_os = "linux") => Reason::Requested,
            _ => Reason::NotLinux,
        },
        cpus: threads.next_power_of_two().min(MOST_LANES) as u32,
    }
}

/// Where this thread counts, after a section found no lane: there are no sections.
pub(crate) fn place_in_sections(_: Choice, _: u32) -> Place {
    Place::SharedLane
}

/// Where this thread counts in a segment whose lanes are locked: lanes are dealt out in turn, so that no lane gets a second thread
/// before each has one.
pub(crate) fn place_in_locked_lanes(cpus: u32) -> Place {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    std::thread_local! {
        static NUMBER: Cell<Option<u32>> = const { Cell::new(None) };
    }
    // Without a destructor and constant, so usable at any moment of a thread's life.
    let number = NUMBER.with(|number| {
        number.get().unwrap_or_else(|| {
            let next = NEXT.fetch_add(1, Relaxed);
            number.set(Some(next));
            next
        })
    });
    Place::LockedLane(number % cpus.max(1))
}

/// The system's text for an error number.
pub(crate) fn error_text(error: u16) -> io::Error {
    io::Error::from_raw_os_error(i32::from(error))
}

/// Zeroed memory, freed when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: plain memory; who reads and writes it how is the segment's business.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Memory of this process.
    pub(crate) fn private(bytes: usize) -> io::Result<Self> {
        let layout = Layout::from_size_align(bytes, STRIDE).map_err(io::Error::other)?;
        // SAFETY: the size is not zero: a segment has lanes.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, layout })
    }

    /// Memory that children share: not to be had here.
    pub(crate) fn shared(_bytes: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Memory of a file: not to be had here.
    #[cfg(unix)]
    pub(crate) fn of_fd(_: usize, _: std::os::fd::BorrowedFd<'_>, _: u64) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, not used after this.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
