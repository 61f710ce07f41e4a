//! Locks in storms: exclusion, visibility, timeouts, handing over, panics, forks.
//!
//! What is locked is two words that every writer makes equal again, so a reader beside a writer sees them differ, and two
//! writers lose additions. Each storm runs with every lock; `wrong.rs` has locks that let somebody in, which have to be found.
//!
//! Run with `--nocapture` to see the totals and the seeds.
#![cfg(not(loom))]

mod events;
mod exclusion;
mod fork;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(countersink_portable)))]
#[path = "../../../percpu/tests/common/libc_rseq.rs"]
mod libc_rseq;
mod starvation;
mod timeouts;
mod wrong;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use countersink_sync::lock_api::{
    RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockTimed, RwLock,
};
use countersink_sync::rwsem::{AddFirst, LoadFirst, OwnershipFirst};
use countersink_sync::{NoEvents, RawPercpuRwSem, RawRwSem, RecordOwner};

countersink_sync::lock_events! {
    /// The events of locks in storms.
    pub(crate) STORM_LOCK: StormLock = "storm_lock"
}

/// Everything that a lock of this crate can do.
pub(crate) trait Lock:
    RawRwLock
    + RawRwLockDowngrade
    + RawRwLockFair
    + RawRwLockTimed<Duration = std::time::Duration, Instant = std::time::Instant>
    + Sync
    + Send
    + 'static
{
}

impl<L> Lock for L where
    L: RawRwLock
        + RawRwLockDowngrade
        + RawRwLockFair
        + RawRwLockTimed<Duration = std::time::Duration, Instant = std::time::Instant>
        + Sync
        + Send
        + 'static
{
}

/// Two words that a writer makes equal, one after the other. Atomic, so that a lock that lets somebody in is found without undefined
/// behaviour.
#[derive(Debug, Default)]
pub(crate) struct Twins([AtomicU64; 2]);

impl Twins {
    /// As a writer.
    pub(crate) fn add(&self) {
        for word in &self.0 {
            word.store(word.load(Relaxed) + 1, Relaxed);
        }
    }

    /// As a reader: what both are, or how they differ.
    pub(crate) fn get(&self) -> Result<u64, [u64; 2]> {
        let [first, second] = self.0.each_ref().map(|word| word.load(Relaxed));
        if first == second {
            Ok(first)
        } else {
            Err([first, second])
        }
    }
}

/// The locked twins.
pub(crate) type Locked<L> = RwLock<L, Twins>;

/// Runs a test with every lock.
macro_rules! with_every_lock {
    ($($test:ident)*) => {
        $(
            mod $test {
                use super::super::*;
                #[test]
                fn rwsem() {
                    super::$test::<RawRwSem<OwnershipFirst>>();
                }
                #[test]
                fn rwsem_that_loads_first() {
                    super::$test::<RawRwSem<LoadFirst>>();
                }
                #[test]
                fn rwsem_that_adds_first_counts_and_remembers() {
                    super::$test::<RawRwSem<AddFirst, StormLock, RecordOwner>>();
                }
                #[test]
                fn percpu_rwsem() {
                    super::$test::<RawPercpuRwSem>();
                }
            }
        )*
    };
}
pub(crate) use with_every_lock;

/// xorshift64*.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

#[test]
fn locks_are_small() {
    assert_eq!(size_of::<RawRwSem>(), 8);
    assert_eq!(size_of::<RawRwSem<OwnershipFirst, StormLock>>(), 8);
    assert_eq!(
        size_of::<RawRwSem<OwnershipFirst, NoEvents, RecordOwner>>(),
        16
    );
}
