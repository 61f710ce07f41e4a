//! The operations where no section can run: one locked instruction or a compare-exchange loop, on
//! the shared lane or on lanes that only such operations write.
//!
//! A locked operation on a lane that sections write would be lost between a section's load and its
//! store, since sections lock nothing.
#![allow(unsafe_code)]

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicI64, AtomicU64};

use crate::wide;

/// The word as an atomic.
///
/// # Safety
/// For this and every function below: `word` is aligned (16 bytes for pairs), mapped while the
/// call lasts, and in a lane that sections do not write.
unsafe fn unsigned<'a>(word: *mut u64) -> &'a AtomicU64 {
    // SAFETY: the caller's promise; everyone else uses atomics too.
    unsafe { AtomicU64::from_ptr(word) }
}

/// # Safety
/// As [`unsigned`].
unsafe fn signed<'a>(word: *mut u64) -> &'a AtomicI64 {
    // SAFETY: as above; i64 and u64 have one layout.
    unsafe { AtomicI64::from_ptr(word.cast()) }
}

/// A function for each operation, which takes the word first.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($word:ident $(, $operand:ident: $type:ty)* $(,)?) -> $result:ty = $body:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As [`unsigned`].
        pub(crate) unsafe fn $name($word: *mut u64, $($operand: $type),*) -> $result {
            // SAFETY: the caller's promise.
            unsafe { $body }
        }
    )*};
}

operations! {
    /// Adds 1.
    inc(word) -> () = { unsigned(word).fetch_add(1, Relaxed); };
    /// [`Op::Add`](crate::spec::Op::Add).
    add(word, n: u64) -> () = { unsigned(word).fetch_add(n, Relaxed); };
    /// [`Op::Add`](crate::spec::Op::Add), as a release.
    add_release(word, n: u64) -> () = { unsigned(word).fetch_add(n, Release); };
    /// [`Op::AddReturn`](crate::spec::Op::AddReturn).
    add_return(word, n: u64) -> u64 = unsigned(word).fetch_add(n, Relaxed).wrapping_add(n);
    /// [`Op::CompareExchange`](crate::spec::Op::CompareExchange): what the word held.
    compare_exchange(word, old: u64, new: u64) -> u64 =
        match unsigned(word).compare_exchange(old, new, AcqRel, Acquire) { Ok(held) | Err(held) => held };
    /// [`Op::Exchange`](crate::spec::Op::Exchange): what the word held.
    exchange(word, new: u64) -> u64 = unsigned(word).swap(new, AcqRel);
    /// [`Op::StoreMinSigned`](crate::spec::Op::StoreMinSigned): what the word held.
    store_min_signed(word, value: u64) -> u64 = signed(word).fetch_min(value as i64, Relaxed) as u64;
    /// [`Op::StoreMinUnsigned`](crate::spec::Op::StoreMinUnsigned): what the word held.
    store_min_unsigned(word, value: u64) -> u64 = unsigned(word).fetch_min(value, Relaxed);
    /// [`Op::StoreMaxSigned`](crate::spec::Op::StoreMaxSigned): what the word held.
    store_max_signed(word, value: u64) -> u64 = signed(word).fetch_max(value as i64, Relaxed) as u64;
    /// [`Op::StoreMaxUnsigned`](crate::spec::Op::StoreMaxUnsigned): what the word held.
    store_max_unsigned(word, value: u64) -> u64 = unsigned(word).fetch_max(value, Relaxed);
    /// [`Op::AddWithin`](crate::spec::Op::AddWithin): whether it stored.
    add_within(word, n: u64, most: u64) -> bool = add_within_if(word, n, most, || true);
    /// [`Op::AddWithinAtMost`](crate::spec::Op::AddWithinAtMost): whether it stored.
    add_within_at_most(word, n: u64, most: u64, guard: *const u64, limit: u64) -> bool = {
        let guard = signed(guard.cast_mut());
        add_within_if(word, n, most, || guard.load(Acquire) <= limit as i64)
    };
    /// [`Op::AddWithinAtLeast`](crate::spec::Op::AddWithinAtLeast): whether it stored.
    add_within_at_least(word, n: u64, most: u64, guard: *const u64, limit: u64) -> bool = {
        let guard = signed(guard.cast_mut());
        add_within_if(word, n, most, || guard.load(Acquire) >= limit as i64)
    };
    /// [`Op::AddPair`](crate::spec::Op::AddPair).
    add_pair(word, first: u64, second: u64) -> () = {
        let mut held = wide::load(word);
        loop {
            let sums = [held[0].wrapping_add(first), held[1].wrapping_add(second)];
            let found = wide::compare_exchange(word, held, sums);
            if found == held {
                break;
            }
            held = found;
        }
    };
    /// [`Op::CompareExchangePair`](crate::spec::Op::CompareExchangePair): what the words held.
    compare_exchange_pair(
        word, old_first: u64, old_second: u64, new_first: u64, new_second: u64
    ) -> [u64; 2] =
        wide::compare_exchange(word, [old_first, old_second], [new_first, new_second]);
}

/// Adds to the first of two words, if that is allowed and takes it no further than `most` from the second.
///
/// # Safety
/// As [`unsigned`].
unsafe fn add_within_if(word: *mut u64, n: u64, most: u64, allowed: impl Fn() -> bool) -> bool {
    // SAFETY: the caller's promise, here and below.
    let mut held = unsafe { wide::load(word) };
    loop {
        let sum = held[0].wrapping_add(n);
        let distance = sum.wrapping_sub(held[1]) as i64;
        if distance.unsigned_abs() > most || !allowed() {
            return false;
        }
        // SAFETY: as above.
        let found = unsafe { wide::compare_exchange(word, held, [sum, held[1]]) };
        if found == held {
            return true;
        }
        held = found;
    }
}

/// [`Op::AddUnless`](crate::spec::Op::AddUnless): whether it added.
///
/// A guard may be raised between a test and a locked add, and no fence would find the thread in
/// between. So the add comes first; where the guard is up after it, the add is taken back *on the
/// same lane*. In between the word is too high for a moment, which whoever raised the guard has to
/// expect.
///
/// # Safety
/// As [`unsigned`]; `guard` is a readable, aligned word.
pub(crate) unsafe fn add_unless(word: *mut u64, n: u64, guard: *const u64) -> bool {
    // SAFETY: the caller's promise; the guard is only read.
    let (word, guard) = unsafe { (unsigned(word), unsigned(guard.cast_mut())) };
    if guard.load(Acquire) != 0 {
        return false;
    }
    // SeqCst pairs with whoever raises the guard and then reads the lanes: one of the two sees the
    // other.
    word.fetch_add(n, SeqCst);
    let is_up = guard.load(SeqCst) != 0;
    if is_up {
        word.fetch_sub(n, Release);
    }
    !is_up
}
