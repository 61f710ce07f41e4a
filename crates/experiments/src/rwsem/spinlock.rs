//! The reader-writer semaphore that the series removes: a count under a spinlock, without its queue.
//!
//! The kernel's `rwsem-spinlock.c` keeps readers and writer in a plain count, and takes a spinlock to look at it and to change
//! it. Who cannot come in sleeps there; here it yields.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use countersink_sync::lock_api::{GuardSend, RawRwLock};

/// The count: -1 is a writer, and above 0 there are readers.
#[derive(Debug)]
pub(super) struct SpinlockRwSem {
    is_locked: AtomicBool,
    count: UnsafeCell<i64>,
}

// SAFETY: the count is touched only with the spinlock held.
unsafe impl Sync for SpinlockRwSem {}

impl SpinlockRwSem {
    fn with<R>(&self, look: impl FnOnce(&mut i64) -> R) -> R {
        let mut spins = 0_u32;
        while self.is_locked.swap(true, Acquire) {
            while self.is_locked.load(Relaxed) {
                // Its holder may not be running.
                spins += 1;
                if spins.is_multiple_of(100) {
                    std::thread::yield_now();
                }
                core::hint::spin_loop();
            }
        }
        // SAFETY: the spinlock is ours.
        let result = look(unsafe { &mut *self.count.get() });
        self.is_locked.store(false, Release);
        result
    }

    fn until(&self, come_in: impl Fn() -> bool) {
        while !come_in() {
            std::thread::yield_now();
        }
    }
}

// SAFETY: a writer comes in at 0 only and makes it -1, and readers come in at 0 and above.
unsafe impl RawRwLock for SpinlockRwSem {
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "lock_api asks for it"
    )]
    const INIT: Self = SpinlockRwSem {
        is_locked: AtomicBool::new(false),
        count: UnsafeCell::new(0),
    };

    type GuardMarker = GuardSend;

    fn lock_shared(&self) {
        self.until(|| self.try_lock_shared());
    }

    fn try_lock_shared(&self) -> bool {
        self.with(|count| {
            let is_in = *count >= 0;
            *count += i64::from(is_in);
            is_in
        })
    }

    unsafe fn unlock_shared(&self) {
        self.with(|count| *count -= 1);
    }

    fn lock_exclusive(&self) {
        self.until(|| self.try_lock_exclusive());
    }

    fn try_lock_exclusive(&self) -> bool {
        self.with(|count| {
            let is_in = *count == 0;
            *count -= i64::from(is_in);
            is_in
        })
    }

    unsafe fn unlock_exclusive(&self) {
        self.with(|count| *count = 0);
    }
}
