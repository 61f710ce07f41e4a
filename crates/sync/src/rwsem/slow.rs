//! Waiting, waking and handing over.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::time::Instant;

use super::choice::{Choice, HANDED_OVER};
use super::state::{
    HANDOFF, READER, WAITERS, WOKEN, WRITER, is_free, is_readable, is_waited_for, is_writable,
    must_wake,
};
use super::waiter::{Spin, Waiter};
use super::{RawRwSem, TryRead, mutants};
use crate::events::{Event, Events};
use crate::owner::{Owner, OwnerKind};
use crate::parking::{ParkResult, ParkToken, UnparkResult, park, unpark_filter};

/// What became of a sleep.
enum Slept {
    /// The lock is the thread's.
    HandedOver,
    /// Something may have changed.
    TryAgain,
}

impl<T: TryRead, E: Events, O: Owner> RawRwSem<T, E, O> {
    fn key(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Waits as a reader that was not let in, and whether it is in then. What it found when it was counted, if it was.
    #[cold]
    pub(super) fn wait_to_read(&self, found: Option<u64>, deadline: Option<Instant>) -> bool {
        let mut waiter = Waiter::new(OwnerKind::Reader, deadline);
        let mut is_counted = found.is_some_and(|found| self.may_stay(found));
        loop {
            if self.spin_to_read(&mut waiter, &mut is_counted) {
                break;
            }
            if waiter.is_over() && self.stop_reading(&waiter, is_counted) {
                E::count(Event::RlockFail);
                return false;
            }
            match self.sleep_to_read(&mut waiter, &mut is_counted) {
                Slept::HandedOver => {
                    E::count(Event::RlockHandoff);
                    break;
                }
                Slept::TryAgain => {}
            }
        }
        if waiter.is_woken {
            // Others may be woken again.
            self.state.fetch_and(!WOKEN, Relaxed);
        }
        self.owner.note(OwnerKind::Reader);
        E::count(Event::Rlock);
        true
    }

    /// Whether the reader came in while it spun. It stays counted while there is a writer, and so comes in when that leaves;
    /// where the lock is to be handed over it is not.
    fn spin_to_read(&self, waiter: &mut Waiter, is_counted: &mut bool) -> bool {
        loop {
            if *is_counted {
                // Acquire pairs with the release of the writer that left.
                let state = self.state.load(Acquire);
                if state & WRITER == 0 {
                    break;
                }
                if state & HANDOFF != 0 && !self.back_out(is_counted) {
                    break;
                }
            } else if is_readable(self.state.load(Relaxed)) {
                let found = self.state.fetch_add(READER, Acquire);
                if is_readable(found) {
                    break;
                }
                *is_counted = self.may_stay(found);
            }
            if !waiter.spin.step() {
                E::count(Event::OptFail);
                return false;
            }
        }
        E::count(Event::OptRlock);
        true
    }

    /// Whether a reader that has just been counted stays so, and comes in when the writer leaves. Not where the lock is handed
    /// over: those who came later would come in first.
    fn may_stay(&self, found: u64) -> bool {
        let stays = found & HANDOFF == 0;
        if !stays {
            self.leave();
        }
        stays
    }

    /// Leaves, unless there is no writer any more, which makes it a holder; whether it left.
    fn back_out(&self, is_counted: &mut bool) -> bool {
        let left = self.state.fetch_update(AcqRel, Acquire, |state| {
            (state & WRITER != 0).then_some(state - READER)
        });
        *is_counted = left.is_err();
        left.is_ok()
    }

    /// Gives up reading; `false` if it came in at the last moment.
    fn stop_reading(&self, waiter: &Waiter, mut is_counted: bool) -> bool {
        if is_counted && !self.back_out(&mut is_counted) {
            // In at the last moment: back to the loop, which finds that out.
            return false;
        }
        self.pass_on(waiter);
        true
    }

    fn sleep_to_read(&self, waiter: &mut Waiter, is_counted: &mut bool) -> Slept {
        let counted = core::cell::Cell::new(*is_counted);
        let validate = |waiter: &Waiter| {
            let parked = self.state.fetch_update(AcqRel, Acquire, |state| {
                if counted.get() {
                    // Without a writer it is in.
                    (state & WRITER != 0).then(|| waiter.parked(state - READER))
                } else {
                    (!is_readable(state)).then(|| waiter.parked(state))
                }
            });
            if parked.is_ok() {
                counted.set(false);
            }
            parked.is_ok()
        };
        let slept = self.sleep(waiter, validate);
        *is_counted = counted.get();
        slept
    }

    /// Waits as a writer; whether it has the lock then.
    #[cold]
    pub(super) fn wait_to_write(&self, deadline: Option<Instant>) -> bool {
        let mut waiter = Waiter::new(OwnerKind::Writer, deadline);
        loop {
            if self.spin_to_write(&mut waiter) {
                break;
            }
            if waiter.is_over() {
                self.pass_on(&waiter);
                E::count(Event::WlockFail);
                return false;
            }
            let validate = |waiter: &Waiter| {
                let park = |state| (!is_writable(state)).then(|| waiter.parked(state));
                self.state.fetch_update(AcqRel, Acquire, park).is_ok()
            };
            match self.sleep(&mut waiter, validate) {
                Slept::HandedOver => {
                    E::count(Event::WlockHandoff);
                    break;
                }
                Slept::TryAgain => {}
            }
        }
        self.owner.note(OwnerKind::Writer);
        E::count(Event::Wlock);
        true
    }

    fn spin_to_write(&self, waiter: &mut Waiter) -> bool {
        loop {
            let state = self.state.load(Relaxed);
            if is_writable(state) {
                let woken = if waiter.is_woken { WOKEN } else { 0 };
                let taken = (state | WRITER) & !woken;
                // Acquire pairs with the release of those who left.
                if self
                    .state
                    .compare_exchange_weak(state, taken, Acquire, Relaxed)
                    .is_ok()
                {
                    E::count(Event::OptWlock);
                    return true;
                }
                continue;
            }
            if !waiter.spin.step() {
                E::count(Event::OptFail);
                return false;
            }
        }
    }

    /// Sleeps, if `validate` says so, until the lock is handed over, or it may be tried again.
    fn sleep(&self, waiter: &mut Waiter, validate: impl Fn(&Waiter) -> bool) -> Slept {
        let wake_up = waiter.wake_up();
        let kind = waiter.kind;
        let sleeping: &Waiter = waiter;
        let token = ParkToken(core::ptr::from_ref(sleeping).expose_provenance());
        let validate = || validate(sleeping);
        let count = || {
            E::count(match kind {
                OwnerKind::Reader => Event::SleepReader,
                OwnerKind::Writer => Event::SleepWriter,
            });
        };
        let timed_out = |_, was_last| {
            if was_last {
                // Nobody is left who could be woken.
                self.state.fetch_and(!(WAITERS | HANDOFF), Relaxed);
            }
        };
        // SAFETY: the key is this lock's address, under which nothing else parks; nothing here panics or parks.
        #[allow(unsafe_code)]
        let result = unsafe { park(self.key(), validate, count, timed_out, token, wake_up) };
        let woken = || {
            E::count(match kind {
                OwnerKind::Reader => Event::WakeReader,
                OwnerKind::Writer => Event::WakeWriter,
            });
        };
        match result {
            ParkResult::Unparked(HANDED_OVER) => {
                woken();
                waiter.is_woken = false;
                Slept::HandedOver
            }
            ParkResult::Unparked(_) => {
                woken();
                waiter.is_woken = true;
                waiter.spin = Spin::new();
                self.grow_impatient(waiter);
                Slept::TryAgain
            }
            ParkResult::Invalid => Slept::TryAgain,
            ParkResult::TimedOut => {
                // What was to be cleared was cleared when it went to sleep.
                waiter.is_woken = false;
                E::count(Event::SleepTimeout);
                self.grow_impatient(waiter);
                Slept::TryAgain
            }
        }
    }

    /// Asks for a handoff, at the next sleep, if it has waited for too long.
    fn grow_impatient(&self, waiter: &mut Waiter) {
        let asks = !waiter.has_asked
            && (cfg!(loom)
                || waiter
                    .patience
                    .is_some_and(|patience| Instant::now() >= patience));
        if asks {
            waiter.has_asked = true;
            E::count(Event::Handoff);
        }
    }

    /// Sees to it, by a thread that gives up, that others do not wait for it.
    fn pass_on(&self, waiter: &Waiter) {
        if waiter.is_woken {
            self.state.fetch_and(!WOKEN, Relaxed);
        }
        if is_waited_for(self.state.load(Relaxed)) {
            self.was_left(OwnerKind::Writer);
        }
    }

    /// Wakes those who wait for somebody's leaving. What the word is by now is as good as what it was then: whoever has come in
    /// meanwhile looks again.
    #[cold]
    pub(super) fn was_left(&self, by: OwnerKind) {
        if must_wake(self.state.load(Relaxed), by) && !mutants::is(mutants::NO_WAKE) {
            self.wake();
        }
    }

    /// Makes whoever leaves the lock next hand it over, if somebody sleeps.
    pub(super) fn ask_for_handoff(&self) {
        let ask = |state| is_waited_for(state).then_some(state | HANDOFF);
        let _ = self.state.fetch_update(Relaxed, Relaxed, ask);
    }

    /// Wakes those whose turn it is.
    fn wake(&self) {
        let mut choice = Choice::Open;
        let choice = core::cell::RefCell::new(&mut choice);
        let filter = |ParkToken(address)| {
            // SAFETY: a parked thread's, which stays until it is woken or has timed out; that waits for the queue's lock.
            #[allow(unsafe_code)]
            let waiter = unsafe { &*core::ptr::with_exposed_provenance::<Waiter>(address) };
            choice.borrow_mut().look_at(waiter, self)
        };
        let callback = |result: UnparkResult| choice.borrow_mut().end(&result, self);
        // SAFETY: as in sleep(); neither panics nor parks.
        #[allow(unsafe_code)]
        unsafe {
            unpark_filter(self.key(), filter, callback);
        }
    }

    /// Takes the lock for a sleeper, if it is free for it.
    pub(super) fn take_for(&self, kind: OwnerKind) -> bool {
        let take = |state| match kind {
            OwnerKind::Writer => is_free(state).then_some(state | WRITER),
            OwnerKind::Reader => (state & WRITER == 0).then_some(state + READER),
        };
        // Acquire: the sleeper sees what those did who left, by the wake-up.
        self.state.fetch_update(AcqRel, Acquire, take).is_ok()
    }
}
