//! The ways to try to read.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::AtomicU64;
use super::state::{READER, is_readable};

mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// How `try_read` begins. What it does otherwise is the same.
pub trait TryRead: Sealed + 'static {
    #[doc(hidden)]
    fn try_read(state: &AtomicU64) -> Attempt;
}

/// What came of an attempt.
#[doc(hidden)]
#[derive(Debug)]
pub struct Attempt {
    pub outcome: Outcome,
    /// What was found when it was decided.
    pub found: u64,
    /// How often it was tried again.
    pub retries: u64,
}

#[doc(hidden)]
#[derive(Debug)]
pub enum Outcome {
    In,
    /// Counted, but not let in: it has to leave.
    Refused,
    /// Not counted.
    Out,
}

/// Tries for ownership first: takes the lock to be free, and looks only if it was not. One access to the cache line where
/// it was free, and that one for ownership.
#[derive(Debug)]
pub struct OwnershipFirst;

/// Loads first: reads the word before it writes it. The line comes shared, and has to be made exclusive after that,
/// but stays shared where the lock is held by a writer.
#[derive(Debug)]
pub struct LoadFirst;

/// Adds the reader and looks at what was there; takes it back if that was a writer. Never tries again, however many others
/// come and go, but writes the line also where it fails.
#[derive(Debug)]
pub struct AddFirst;

/// The form that is better for the architecture, and what `RawRwSem` does unless told otherwise. On x86-64 an addition never
/// has to be repeated, and takes the line for ownership at once; `bench rwsem` says whether that is better on the machine at hand.
#[cfg(target_arch = "x86_64")]
pub type DefaultTryRead = AddFirst;
/// The form that is better for the architecture, and what `RawRwSem` does unless told otherwise: the arm64 measurements that the kernel's
/// authors published were better when the word was loaded first.
#[cfg(not(target_arch = "x86_64"))]
pub type DefaultTryRead = LoadFirst;

impl Sealed for OwnershipFirst {}
impl TryRead for OwnershipFirst {
    #[inline(always)]
    fn try_read(state: &AtomicU64) -> Attempt {
        exchange(state, 0)
    }
}

impl Sealed for LoadFirst {}
impl TryRead for LoadFirst {
    #[inline(always)]
    fn try_read(state: &AtomicU64) -> Attempt {
        let found = state.load(Relaxed);
        if is_readable(found) {
            return exchange(state, found);
        }
        Attempt {
            outcome: Outcome::Out,
            found,
            retries: 0,
        }
    }
}

impl Sealed for AddFirst {}
impl TryRead for AddFirst {
    #[inline(always)]
    fn try_read(state: &AtomicU64) -> Attempt {
        // Acquire pairs with the release of those who leave.
        let found = state.fetch_add(READER, Acquire);
        let outcome = if is_readable(found) {
            Outcome::In
        } else {
            Outcome::Refused
        };
        Attempt {
            outcome,
            found,
            retries: 0,
        }
    }
}

/// Adds a reader by compare-exchange for as long as that is allowed, beginning with what the word is taken to be.
#[inline(always)]
fn exchange(state: &AtomicU64, expected: u64) -> Attempt {
    let (mut found, mut retries) = (expected, 0);
    loop {
        // Acquire pairs with the release of those who leave.
        match state.compare_exchange(found, found + READER, Acquire, Relaxed) {
            Ok(_) => {
                return Attempt {
                    outcome: Outcome::In,
                    found,
                    retries,
                };
            }
            Err(other) if is_readable(other) => (found, retries) = (other, retries + 1),
            Err(other) => {
                return Attempt {
                    outcome: Outcome::Out,
                    found: other,
                    retries,
                };
            }
        }
    }
}
