//! A reader-writer lock in one word.
//!
//! The word is described in `state.rs`. Nobody waits where nobody has to: taking and leaving a free lock are one locked
//! instruction each. Otherwise:
//!
//! - Whoever does not get the lock spins for a while, readers too, and then sleeps in the queue of its address, which
//!   parking_lot_core keeps.
//! - Who leaves the lock wakes the first sleeper, and with a reader all other sleeping readers, to try again. Others may
//!   be faster, since a lock that waits for a sleeper to come is of no use to anybody meanwhile; no more are woken before
//!   those have tried.
//! - **Nobody starves.** Who has waited for [`PATIENCE`] asks for a handoff: from then on nobody takes the lock, and each who leaves it
//!   hands it to the first in the queue, for as long as somebody in it has asked. So after [`PATIENCE`] (and the time it takes to be
//!   scheduled) a waiter waits for those who hold the lock, or come in before it has asked, and for one turn of each that was in
//!   the queue before it.
//!
//! After a fork the child has a copy, in which others than the thread that forked hold and wait for ever; and parking_lot_core's queues may be
//! locked there if another thread was just going to sleep or waking somebody. A lock that nobody waited for works.
//!
//! Readers recurse at their own risk, as with std: one that reads while it reads waits for ever if a writer has asked
//! for a handoff in between.

mod choice;
#[doc(hidden)]
pub mod mutants;
mod slow;
mod state;
#[cfg(all(test, not(loom)))]
mod tests;
mod try_read;
mod waiter;

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use lock_api::{GuardSend, RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockTimed, RwLock};

use crate::events::{Event, Events, NoEvents};
use crate::owner::{NoOwner, Owner, OwnerKind};
use state::{
    HANDOFF, READER, WAITERS, WRITER, is_free, is_readable, is_waited_for, is_writable, readers,
};
use try_read::Outcome;

pub use try_read::{AddFirst, DefaultTryRead, LoadFirst, OwnershipFirst, TryRead};
pub use waiter::PATIENCE;

#[cfg(not(loom))]
use core::sync::atomic::AtomicU64;
#[cfg(loom)]
use loom::sync::atomic::AtomicU64;

/// A value behind a [`RawRwSem`]: `read`, `write`, `try_read`, `try_write_for` and all else are lock_api's.
pub type RwSem<T> = RwLock<RawRwSem, T>;

/// The guard of a reader of an [`RwSem`].
pub type ReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwSem, T>;
/// The guard of a writer of an [`RwSem`].
pub type WriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwSem, T>;

/// The lock: 8 bytes.
///
/// - `T` is how `try_read` begins.
/// - `E` counts what happens; see [`lock_events!`](crate::lock_events). [`NoEvents`] is no code.
/// - `O` remembers who has it: [`RecordOwner`](crate::RecordOwner), 8 bytes more, for debugging.
pub struct RawRwSem<T = DefaultTryRead, E = NoEvents, O = NoOwner> {
    state: AtomicU64,
    owner: O,
    kind: PhantomData<fn() -> (T, E)>,
}

impl<T: TryRead, E: Events, O: Owner> RawRwSem<T, E, O> {
    /// A lock that nobody holds.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        RawRwSem {
            state: AtomicU64::new(0),
            owner: O::NOBODY,
            kind: PhantomData,
        }
    }

    /// A lock that nobody holds.
    #[cfg(loom)]
    pub fn new() -> Self {
        RawRwSem {
            state: AtomicU64::new(0),
            owner: O::NOBODY,
            kind: PhantomData,
        }
    }

    /// Who has it, if that is remembered.
    pub fn owner(&self) -> &O {
        &self.owner
    }

    /// Counts the reader; what it found, if that does not let it in.
    #[inline(always)]
    fn enter(&self) -> Result<(), u64> {
        // Acquire pairs with the release of those who leave.
        let found = self.state.fetch_add(READER, Acquire);
        if is_readable(found) {
            self.note_reader(found);
            Ok(())
        } else {
            Err(found)
        }
    }

    #[inline(always)]
    fn note_reader(&self, found: u64) {
        if E::COUNTS && found & WAITERS != 0 {
            E::count(Event::RlockSteal);
        }
        self.owner.note(OwnerKind::Reader);
    }

    /// A reader leaves, whether or not it held the lock.
    #[inline(always)]
    fn leave(&self) {
        // Release: whoever comes in later does so after what this reader read.
        if is_waited_for(self.add(READER.wrapping_neg())) {
            self.was_left(OwnerKind::Reader);
        }
    }

    /// Adds as one who leaves; what the word is then. Additions only, since the compiler finds the sign in the processor's
    /// flags after these.
    #[inline(always)]
    fn add(&self, n: u64) -> u64 {
        self.state.fetch_add(n, Release).wrapping_add(n)
    }

    #[inline(always)]
    fn take(&self) -> bool {
        let taken = self.state.compare_exchange(0, WRITER, Acquire, Relaxed);
        if taken.is_ok() {
            self.owner.note(OwnerKind::Writer);
        }
        taken.is_ok()
    }
}

impl<T: TryRead, E: Events, O: Owner> Default for RawRwSem<T, E, O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: TryRead, E: Events, O: Owner> fmt::Debug for RawRwSem<T, E, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.load(Relaxed);
        let has = |bit| state & bit != 0;
        f.debug_struct("RawRwSem")
            .field("writer", &has(WRITER))
            .field("readers", &readers(state))
            .field("waiters", &has(WAITERS))
            .field("handoff", &has(HANDOFF))
            .field("owner", &self.owner)
            .finish()
    }
}

// SAFETY: a writer comes in only by an exchange from a word without readers and writer, or is handed the lock by one;
// a reader holds the lock only while it is counted in a word without WRITER, which keeps writers out.
#[allow(unsafe_code)]
unsafe impl<T: TryRead, E: Events, O: Owner> RawRwLock for RawRwSem<T, E, O> {
    #[cfg(not(loom))]
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "lock_api asks for it"
    )]
    const INIT: Self = Self::new();
    #[cfg(loom)]
    const INIT: Self = panic!("loom's atomics are made at run time");

    // Nothing here depends on the thread.
    type GuardMarker = GuardSend;

    #[inline]
    fn lock_shared(&self) {
        if let Err(found) = self.enter() {
            self.wait_to_read(Some(found), None);
        }
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        E::count(Event::Rtrylock);
        let attempt = T::try_read(&self.state);
        if E::COUNTS && attempt.retries > 0 {
            E::add(Event::RtrylockRetry, attempt.retries);
        }
        match attempt.outcome {
            Outcome::In => {
                self.note_reader(attempt.found);
                true
            }
            Outcome::Refused => self.leave_refused(attempt.found),
            Outcome::Out => {
                E::count(Event::RtrylockFail);
                false
            }
        }
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        self.leave();
    }

    #[inline]
    fn lock_exclusive(&self) {
        if !self.take() {
            self.wait_to_write(None);
        }
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        E::count(Event::Wtrylock);
        let taken = self.take() || self.take_from_sleepers();
        if !taken {
            E::count(Event::WtrylockFail);
        }
        taken
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        self.owner.clear();
        // Release: whoever comes in later sees what this writer wrote.
        if is_waited_for(self.add(WRITER.wrapping_neg())) {
            self.was_left(OwnerKind::Writer);
        }
    }

    fn is_locked(&self) -> bool {
        !is_free(self.state.load(Relaxed))
    }

    fn is_locked_exclusive(&self) -> bool {
        self.state.load(Relaxed) & WRITER != 0
    }
}

// SAFETY: the writer becomes a reader in one step.
#[allow(unsafe_code)]
unsafe impl<T: TryRead, E: Events, O: Owner> RawRwLockDowngrade for RawRwSem<T, E, O> {
    unsafe fn downgrade(&self) {
        // Before others can be readers.
        self.owner.note(OwnerKind::Reader);
        // Release: readers that come in see what this writer wrote.
        if is_waited_for(self.add(READER - WRITER)) {
            self.was_left(OwnerKind::Writer);
        }
    }
}

// SAFETY: as above; whoever is handed the lock has it before it is told.
#[allow(unsafe_code)]
unsafe impl<T: TryRead, E: Events, O: Owner> RawRwLockFair for RawRwSem<T, E, O> {
    unsafe fn unlock_shared_fair(&self) {
        self.ask_for_handoff();
        self.leave();
    }

    unsafe fn unlock_exclusive_fair(&self) {
        self.ask_for_handoff();
        // SAFETY: the caller holds it.
        unsafe { self.unlock_exclusive() };
    }

    unsafe fn bump_shared(&self) {
        if is_waited_for(self.state.load(Relaxed)) {
            // SAFETY: the caller holds it.
            unsafe { self.unlock_shared_fair() };
            self.lock_shared();
        }
    }

    unsafe fn bump_exclusive(&self) {
        if is_waited_for(self.state.load(Relaxed)) {
            // SAFETY: the caller holds it.
            unsafe { self.unlock_exclusive_fair() };
            self.lock_exclusive();
        }
    }
}

// SAFETY: true is returned only with the lock.
#[allow(unsafe_code)]
unsafe impl<T: TryRead, E: Events, O: Owner> RawRwLockTimed for RawRwSem<T, E, O> {
    type Duration = Duration;
    type Instant = Instant;

    /// A time too far away to be told is never reached.
    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        self.enter_in_turn(|| Instant::now().checked_add(timeout))
    }

    fn try_lock_shared_until(&self, timeout: Instant) -> bool {
        self.enter_in_turn(|| Some(timeout))
    }

    fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        self.take() || self.wait_to_write(Instant::now().checked_add(timeout))
    }

    fn try_lock_exclusive_until(&self, timeout: Instant) -> bool {
        self.take() || self.wait_to_write(Some(timeout))
    }
}

impl<T: TryRead, E: Events, O: Owner> RawRwSem<T, E, O> {
    /// A reader leaves that only tried, and was counted for a moment.
    ///
    /// In that moment nobody can be handed the lock. Of many that try again and again some may always be in it, if they are
    /// preempted there, so while the lock is to be handed over they let others run.
    #[cold]
    #[inline(never)]
    fn leave_refused(&self, found: u64) -> bool {
        self.leave();
        if found & HANDOFF != 0 {
            std::thread::yield_now();
        }
        E::count(Event::RtrylockFail);
        false
    }

    /// Reads with a deadline. Looks first whether the lock is to be handed over, since short attempts again and again are as
    /// [`leave_refused`](Self::leave_refused) says.
    fn enter_in_turn(&self, deadline: impl FnOnce() -> Option<Instant>) -> bool {
        if self.state.load(Relaxed) & HANDOFF != 0 {
            return self.wait_to_read(None, deadline());
        }
        match self.enter() {
            Ok(()) => true,
            Err(found) => self.wait_to_read(Some(found), deadline()),
        }
    }

    /// Takes a lock that nobody holds though others sleep: those were not woken yet, or have not tried yet.
    #[cold]
    fn take_from_sleepers(&self) -> bool {
        let taken = self
            .state
            .fetch_update(Acquire, Relaxed, |state| {
                is_writable(state).then_some(state | WRITER)
            })
            .is_ok();
        if taken {
            self.owner.note(OwnerKind::Writer);
        }
        taken
    }
}
