//! Critical sections, one file per architecture.
//!
//! Every file here has the same functions. Each makes *one attempt* at an operation of
//! [`spec::Op`](crate::spec::Op) on the word of the CPU that the thread is on, and says how it
//! went. What to do after an attempt that did not commit is decided elsewhere, in `slot.rs`.
//!
//! A word is named by its address in the lane of CPU 0; the lane of CPU *n* is `n << 16` bytes
//! further on.

#[cfg(all(
    target_os = "linux",
    target_arch = "x86_64",
    target_pointer_width = "64",
    not(countersink_portable)
))]
mod x86_64;
#[cfg(all(
    target_os = "linux",
    target_arch = "x86_64",
    target_pointer_width = "64",
    not(countersink_portable)
))]
pub(crate) use x86_64::*;

#[cfg(not(all(
    target_os = "linux",
    target_arch = "x86_64",
    target_pointer_width = "64",
    not(countersink_portable)
)))]
mod none;
#[cfg(not(all(
    target_os = "linux",
    target_arch = "x86_64",
    target_pointer_width = "64",
    not(countersink_portable)
)))]
pub(crate) use none::*;

/// Where an operation is attempted: what a handle consists of. Two registers, so that a loop over
/// one handle loads nothing.
///
/// The functions that take one are safe to call while
/// - `word` is a word of the lane of CPU 0, 8-byte aligned (16 for pairs), in a mapping with as many
///   CPU lanes as said, which other threads access with atomics and sections only;
/// - `area` is where the threads of this process have their `struct rseq`, registered or with a CPU
///   number that says that they are not: [`own_area`], [`closed_area`], or the C library's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) word: *mut u64,
    /// The lanes in the lower half, where they can be compared as they are; the area in the upper.
    lanes_and_area: u64,
}

impl At {
    pub(crate) fn new(word: *mut u64, area: i32, lanes: u32) -> Self {
        At {
            word,
            lanes_and_area: u64::from(lanes) | u64::from(area as u32) << 32,
        }
    }

    /// What [`parts`](Self::parts) gave.
    #[inline(always)]
    pub(crate) fn of_parts(word: *mut u64, lanes_and_area: u64) -> Self {
        At {
            word,
            lanes_and_area,
        }
    }

    /// The two registers.
    pub(crate) fn parts(self) -> (*mut u64, u64) {
        (self.word, self.lanes_and_area)
    }

    /// The same, so many words further on.
    #[inline(always)]
    pub(crate) fn add(self, words: usize) -> Self {
        At {
            word: self.word.wrapping_add(words),
            ..self
        }
    }

    /// Where a thread's `struct rseq` is, counted from its thread pointer.
    #[inline(always)]
    #[allow(dead_code, reason = "not every architecture has sections")]
    pub(crate) fn area(self) -> isize {
        (self.lanes_and_area as i64 >> 32) as isize
    }

    /// No CPU from here on has a lane.
    #[inline(always)]
    pub(crate) fn lanes(self) -> u32 {
        self.lanes_and_area as u32
    }
}

/// How one attempt went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "not every system and architecture has each case")]
pub(crate) enum Attempt<R> {
    /// The section ran to its end: it committed, or decided to store nothing.
    Done(R),
    /// The thread was preempted, migrated or signalled before the commit; nothing was stored.
    Aborted,
    /// The thread has no lane: it is not registered, the CPU number is beyond the lanes, or the
    /// process does not use sections. Nothing was stored.
    NoLane,
}
