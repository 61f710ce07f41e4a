//! Who of those in the queue is woken, and what the word says afterwards.

use core::sync::atomic::Ordering::{Relaxed, Release};

use super::state::{HANDOFF, READER, WAITERS, WOKEN, WRITER, is_free};
use super::waiter::Waiter;
use super::{RawRwSem, TryRead, mutants};
use crate::events::Events;
use crate::owner::{Owner, OwnerKind};
use crate::parking::{FilterOp, UnparkResult, UnparkToken};

/// The woken thread has to try again.
const TRY_AGAIN: UnparkToken = UnparkToken(0);
/// The woken thread has the lock.
pub(super) const HANDED_OVER: UnparkToken = UnparkToken(1);

/// Who is woken, as it is found out from the first in the queue on.
pub(super) enum Choice {
    /// Nobody was looked at.
    Open,
    /// Nobody: it is not the first one's turn.
    Nobody,
    /// Readers, to try again.
    Readers,
    /// A writer, to try again.
    Writer,
    /// Readers or a writer, with the lock; and whether somebody else has asked for a handoff.
    HandOver { kind: OwnerKind, others: bool },
}

impl Choice {
    pub(super) fn look_at<T: TryRead, E: Events, O: Owner>(
        &mut self,
        waiter: &Waiter,
        lock: &RawRwSem<T, E, O>,
    ) -> FilterOp {
        match self {
            Choice::Open => {
                *self = Choice::first(waiter, lock);
                match self {
                    Choice::Nobody => FilterOp::Stop,
                    _ => FilterOp::Unpark,
                }
            }
            Choice::Readers if mutants::is(mutants::ONE_READER) => FilterOp::Stop,
            Choice::Readers if waiter.kind == OwnerKind::Reader => FilterOp::Unpark,
            Choice::Readers => FilterOp::Skip,
            Choice::HandOver {
                kind: OwnerKind::Reader,
                ..
            } if waiter.kind == OwnerKind::Reader => {
                // The first one keeps writers out.
                lock.state.fetch_add(READER, Relaxed);
                FilterOp::Unpark
            }
            Choice::HandOver { others, .. } => {
                *others |= waiter.has_asked;
                FilterOp::Skip
            }
            Choice::Nobody | Choice::Writer => FilterOp::Stop,
        }
    }

    fn first<T: TryRead, E: Events, O: Owner>(waiter: &Waiter, lock: &RawRwSem<T, E, O>) -> Choice {
        let state = lock.state.load(Relaxed);
        let kind = waiter.kind;
        if state & HANDOFF != 0 {
            return if lock.take_for(kind) {
                Choice::HandOver {
                    kind,
                    others: false,
                }
            } else {
                Choice::Nobody
            };
        }
        let has_turn = match kind {
            OwnerKind::Reader => state & WRITER == 0,
            OwnerKind::Writer => is_free(state),
        };
        match kind {
            _ if !has_turn || state & WOKEN != 0 => Choice::Nobody,
            OwnerKind::Reader => Choice::Readers,
            OwnerKind::Writer => Choice::Writer,
        }
    }

    /// Says in the word what is so now, with the queue still locked.
    pub(super) fn end<T: TryRead, E: Events, O: Owner>(
        &self,
        result: &UnparkResult,
        lock: &RawRwSem<T, E, O>,
    ) -> UnparkToken {
        let (clear, set, token) = match self {
            Choice::Open => (WAITERS | HANDOFF, 0, TRY_AGAIN),
            Choice::Nobody => return TRY_AGAIN,
            Choice::Readers | Choice::Writer => (0, WOKEN, TRY_AGAIN),
            Choice::HandOver { others: true, .. } => (0, 0, HANDED_OVER),
            Choice::HandOver { others: false, .. } => (HANDOFF, 0, HANDED_OVER),
        };
        let empty = if result.have_more_threads {
            0
        } else {
            WAITERS | HANDOFF
        };
        let change = |state| Some((state | set) & !(clear | empty));
        // Release: those who come in now came after this.
        let _ = lock.state.fetch_update(Release, Relaxed, change);
        token
    }
}
