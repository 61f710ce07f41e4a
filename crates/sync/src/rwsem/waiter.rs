//! A thread that waits: how long it spins, when it loses patience, what goes into the word when it sleeps.

use std::time::{Duration, Instant};

use super::mutants;
use super::state::{HANDOFF, WAITERS, WOKEN};
use crate::owner::OwnerKind;

/// How long a thread sleeps before it asks that the lock be handed to it.
pub const PATIENCE: Duration = Duration::from_millis(1);

/// How a thread waits. While it sleeps, those who wake look at it through its address, under the lock of the
/// queue.
pub(super) struct Waiter {
    pub(super) kind: OwnerKind,
    /// Whether it has asked for a handoff.
    pub(super) has_asked: bool,
    /// Whether it was woken to try again, and has not tried yet; `WOKEN` is its to clear.
    pub(super) is_woken: bool,
    pub(super) deadline: Option<Instant>,
    pub(super) patience: Option<Instant>,
    pub(super) spin: Spin,
}

impl Waiter {
    pub(super) fn new(kind: OwnerKind, deadline: Option<Instant>) -> Self {
        Waiter {
            kind,
            has_asked: false,
            is_woken: false,
            deadline,
            patience: None,
            spin: Spin::new(),
        }
    }

    /// The flags that go with parking.
    pub(super) fn parked(&self, state: u64) -> u64 {
        let state = if self.is_woken { state & !WOKEN } else { state };
        let asks = self.has_asked && !mutants::is(mutants::NO_HANDOFF);
        state | WAITERS | if asks { HANDOFF } else { 0 }
    }

    /// When to wake up by itself: to give up or to ask.
    pub(super) fn wake_up(&mut self) -> Option<Instant> {
        if self.has_asked || mutants::is(mutants::NO_HANDOFF) {
            return self.deadline;
        }
        let patience = *self
            .patience
            .get_or_insert_with(|| Instant::now() + PATIENCE);
        Some(
            self.deadline
                .map_or(patience, |deadline| deadline.min(patience)),
        )
    }

    pub(super) fn is_over(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// Spinning, longer each time, and then letting others run.
#[cfg_attr(loom, allow(dead_code, reason = "nobody spins there"))]
pub(super) struct Spin(u32);

/// Steps that pause, twice as long each.
#[cfg_attr(loom, allow(dead_code))]
const PAUSES: u32 = 6;
/// Steps in all; the others yield.
#[cfg_attr(loom, allow(dead_code))]
const STEPS: u32 = 10;

impl Spin {
    pub(super) fn new() -> Self {
        Spin(0)
    }

    /// One step; `false` if there were enough.
    #[cfg(not(loom))]
    pub(super) fn step(&mut self) -> bool {
        if self.0 >= STEPS {
            return false;
        }
        if self.0 < PAUSES {
            (0..1 << self.0).for_each(|_| core::hint::spin_loop());
        } else {
            std::thread::yield_now();
        }
        self.0 += 1;
        true
    }

    #[cfg(loom)]
    pub(super) fn step(&mut self) -> bool {
        false
    }
}
