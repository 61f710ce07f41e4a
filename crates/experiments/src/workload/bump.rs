//! The addition to a counter that each operation does besides.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use countersink::BatchCounter;

use super::WorkloadError;
use crate::batch::Way;
use crate::batch::kernel::{Kernel, Masked};
use crate::shared_memory::Shared;

/// A way to count, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bump {
    /// No counter.
    None,
    /// [`BatchCounter`].
    Carry,
    /// The seed's algorithm.
    Kernel,
    /// What the seed replaced.
    Masked,
    /// One shared word.
    Atomic,
}

impl Bump {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Bump::None => "none",
            Bump::Carry => "carry",
            Bump::Kernel => "kernel",
            Bump::Masked => "masked",
            Bump::Atomic => "atomic",
        }
    }
}

/// The batch of those that have one.
const BATCH: u32 = 32;

static CARRY: BatchCounter =
    BatchCounter::new("workload_carry").help("Operations of the workload, as a batch counter");

/// A counter that all tasks share.
pub(super) enum Counter {
    None,
    Carry,
    Kernel(Kernel),
    Masked(Masked),
    Atomic(Shared<AtomicI64>),
}

impl Counter {
    pub(super) fn new(bump: Bump) -> Result<Self, WorkloadError> {
        Ok(match bump {
            Bump::None => Counter::None,
            Bump::Carry => {
                // Before tasks are forked, so that it is theirs together.
                CARRY.set(0);
                Counter::Carry
            }
            Bump::Kernel => Counter::Kernel(Kernel::new(BATCH).map_err(WorkloadError::Memory)?),
            Bump::Masked => Counter::Masked(Masked::new(BATCH).map_err(WorkloadError::Memory)?),
            Bump::Atomic => {
                let word = Shared::new(AtomicI64::new(0));
                Counter::Atomic(word.map_err(|error| WorkloadError::Memory(error.to_string()))?)
            }
        })
    }

    #[inline(always)]
    pub(super) fn add(&self) {
        match self {
            Counter::None => {}
            Counter::Carry => CARRY.add(1),
            Counter::Kernel(counter) => Kernel::add(counter.handle(), 1),
            Counter::Masked(counter) => Masked::add(counter.handle(), 1),
            Counter::Atomic(word) => {
                word.fetch_add(1, Relaxed);
            }
        }
    }

    /// What was counted; `None` without a counter.
    pub(super) fn sum(&self) -> Option<i64> {
        match self {
            Counter::None => None,
            Counter::Carry => Some(CARRY.sum()),
            Counter::Kernel(counter) => Some(counter.sum()),
            Counter::Masked(counter) => Some(counter.sum()),
            Counter::Atomic(word) => Some(word.load(Relaxed)),
        }
    }
}
