//! The word of a [`RawRwSem`](super::RawRwSem), bit by bit.
//!
//! | bits | name | meaning |
//! |---|---|---|
//! | 0 | [`WRITER`] | a writer holds the lock |
//! | 1 | [`HANDOFF`] | nobody may take the lock: whoever leaves it hands it to the first in the queue; only with `WAITERS` |
//! | 2 | [`WOKEN`] | a thread was woken to try again, so nobody else needs to be |
//! | 3-7 | | 0 |
//! | 8-62 | [`READER`] | readers: those that hold the lock, and those that found a writer and have not left yet |
//! | 63 | [`WAITERS`] | threads are parked; written under the lock of their queue only |
//!
//! The last is the sign, so that who leaves finds it in the processor's flags, and needs not what the word was.
//!
//! There are 2^55 readers to go before they overflow: more than there can be threads, or leaked guards in a
//! century.
//!
//! A reader adds itself first and looks at what was there. If that was a writer, the reader may stay: no other writer can
//! come in before it, and it holds the lock when the writer leaves. So a reader that is counted holds the
//! lock exactly while `WRITER` is clear.

use crate::owner::OwnerKind;

/// A writer holds the lock.
pub(super) const WRITER: u64 = 1;
/// The lock is handed over.
pub(super) const HANDOFF: u64 = 1 << 1;
/// A thread was woken to try again.
pub(super) const WOKEN: u64 = 1 << 2;
/// One reader.
pub(super) const READER: u64 = 1 << 8;
/// Threads are parked.
pub(super) const WAITERS: u64 = 1 << 63;
/// All readers.
const READERS: u64 = !WAITERS & !(READER - 1);

/// Whether a reader may come in, or has just come in as this was what it found.
#[inline(always)]
pub(super) fn is_readable(state: u64) -> bool {
    state & (WRITER | HANDOFF) == 0
}

/// Whether a writer may come in.
#[inline(always)]
pub(super) fn is_writable(state: u64) -> bool {
    is_free(state) && state & HANDOFF == 0
}

/// Whether nobody holds the lock.
#[inline(always)]
pub(super) fn is_free(state: u64) -> bool {
    state & (WRITER | READERS) == 0
}

/// Whether somebody may have to be woken, now or when others have left: what those who leave look at.
#[inline(always)]
pub(super) fn is_waited_for(state: u64) -> bool {
    (state as i64) < 0
}

/// How many readers are counted.
pub(super) fn readers(state: u64) -> u64 {
    (state & READERS) / READER
}

/// Whether whoever left, and made the lock what it is, has to wake somebody. Those who wait for a reader to leave are writers;
/// when a writer leaves, readers may wait, though others are in already.
pub(super) fn must_wake(state: u64, left: OwnerKind) -> bool {
    let is_open = match left {
        OwnerKind::Reader => is_free(state),
        OwnerKind::Writer => state & WRITER == 0,
    };
    let is_woken = state & (WOKEN | HANDOFF) == WOKEN;
    is_waited_for(state) && is_open && !is_woken
}
