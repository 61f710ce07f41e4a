//! Words for locks: private memory in lanes, never a region, or two processes would share a lock after a fork.

use std::sync::{Mutex, MutexGuard, TryLockError};

use countersink_percpu::{Segment, Slots, WORDS};

struct Pool {
    segment: Option<&'static Segment>,
    /// The first word of the segment that was never claimed.
    next: usize,
    free: Vec<Slots<'static>>,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    segment: None,
    next: WORDS,
    free: Vec::new(),
});

/// How often the pool is tried for. Who has it needs microseconds, but in a child that was forked meanwhile nobody has it, and it
/// stays locked.
const TRIES: u32 = 1000;

fn pool() -> Option<MutexGuard<'static, Pool>> {
    for _ in 0..TRIES {
        match POOL.try_lock() {
            Ok(pool) => return Some(pool),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}

/// A word whose lanes add up to 0; `None` for want of memory, or of the pool.
pub(super) fn claim() -> Option<Slots<'static>> {
    let mut pool = pool()?;
    if let Some(words) = pool.free.pop() {
        return Some(words);
    }
    if pool.next >= WORDS {
        // Locks come and go, but segments stay: their words are used again.
        pool.segment = Some(Box::leak(Box::new(Segment::private().ok()?)));
        pool.next = 0;
    }
    let words = pool.segment?.slots(pool.next, 1)?;
    pool.next += 1;
    Some(words)
}

/// Gives a word back; for ever, if a guard was leaked and it does not add up to 0.
pub(super) fn release(words: Slots<'static>) {
    let is_zero = words.get(0).is_some_and(|word| word.sum() == 0);
    if is_zero && let Some(mut pool) = pool() {
        pool.free.push(words);
    }
}
