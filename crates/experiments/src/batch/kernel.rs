//! The kernel's algorithms.
//!
//! Each CPU has a word; when it would reach the batch, it is folded into a shared count under a lock. In the kernel interrupts
//! are off while the lock is held, so that no handler finds it taken by the code that it interrupted. Here
//! handlers are put off ([`deferred`](countersink_percpu::local::deferred)), which costs about as little. What cannot be had in user space
//! is a lock that nobody is preempted with.

use core::hint::spin_loop;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI64};

use countersink_percpu::local::deferred::masked;
use countersink_percpu::{Segment, Slot};

use super::ways::Way;

/// What all of them share.
#[derive(Debug)]
pub struct Shared {
    segment: Segment,
    folded: crate::shared_memory::Shared<Folded>,
    batch: i64,
}

/// The lock and what it protects, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Folded {
    taken: AtomicBool,
    count: AtomicI64,
}

/// What a loop holds.
#[derive(Clone, Copy, Debug)]
pub struct Handle<'a> {
    word: Slot<'a, i64>,
    folded: &'a Folded,
    batch: i64,
}

impl Shared {
    fn new(batch: u32) -> Result<Self, String> {
        // Forked children count together, where there is such memory.
        let segment = Segment::shared().or_else(|_| Segment::private());
        let segment = segment.map_err(|error| error.to_string())?;
        let folded = crate::shared_memory::Shared::new(Folded::default());
        Ok(Shared {
            segment,
            folded: folded.map_err(|error| error.to_string())?,
            batch: i64::from(batch),
        })
    }

    fn handle(&self) -> Handle<'_> {
        Handle {
            word: self.segment.slot(0).expect("a segment has words"),
            folded: &self.folded,
            batch: self.batch,
        }
    }

    fn sum(&self) -> i64 {
        self.handle().read().wrapping_add(self.handle().word.sum())
    }

    /// As the kernel has it: a batch for each CPU, and one for threads without a lane.
    fn bound(&self) -> u64 {
        (u64::from(self.segment.cpus()) + 1) * self.batch.unsigned_abs()
    }
}

impl Handle<'_> {
    /// `this_cpu_read`: one load in the kernel. Here it is a section of its own, about as long as the one that adds, which makes
    /// these ways dearer than the kernel's. To ask for the CPU and load from its lane costs more still.
    #[inline(always)]
    fn this_cpu(&self) -> i64 {
        // Exchanges nothing for nothing at worst.
        match self.word.compare_exchange(0, 0) {
            Ok(held) | Err(held) => held,
        }
    }

    /// Whether the CPU's word may become this.
    #[inline(always)]
    fn is_within(&self, sum: i64) -> bool {
        sum.unsigned_abs() < self.batch.unsigned_abs()
    }

    /// The loop of the seed.
    #[inline(always)]
    fn add_by_loop(&self, n: i64) {
        let mut count = self.this_cpu();
        loop {
            let sum = count.wrapping_add(n);
            if !self.is_within(sum) {
                return fold(*self, n);
            }
            // Another CPU's word with the same value will do: what was decided depends on the value only.
            match self.word.compare_exchange(count, sum) {
                Ok(_) => return,
                Err(held) => count = held,
            }
        }
    }

    #[inline(always)]
    fn read(&self) -> i64 {
        self.folded.count.load(Relaxed)
    }
}

/// The slow path: under the lock, with handlers put off.
#[cold]
#[inline(never)]
fn fold(handle: Handle<'_>, n: i64) {
    masked(|| fold_masked(handle, n));
}

fn fold_masked(handle: Handle<'_>, n: i64) {
    let folded = handle.folded;
    while folded
        .taken
        .compare_exchange_weak(false, true, Acquire, Relaxed)
        .is_err()
    {
        while folded.taken.load(Relaxed) {
            spin_loop();
        }
    }
    // On another CPU by now, perhaps, or with another value.
    let here = handle.word.exchange(0);
    let count = folded.count.load(Relaxed);
    folded
        .count
        .store(count.wrapping_add(here).wrapping_add(n), Relaxed);
    folded.taken.store(false, Release);
}

#[cold]
#[inline(never)]
fn add_out_of_line(handle: Handle<'_>, n: i64) {
    handle.add_by_loop(n);
}

/// A way for each variant of the kernel's.
macro_rules! ways {
    ($($(#[$doc:meta])* $name:ident = $text:literal, |$handle:ident, $n:ident| $add:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(Shared);

        impl Way for $name {
            const NAME: &'static str = $text;
            type Handle<'a> = Handle<'a>;
            fn new(batch: u32) -> Result<Self, String> {
                Shared::new(batch).map($name)
            }
            fn handle(&self) -> Handle<'_> {
                self.0.handle()
            }
            #[inline(always)]
            fn add($handle: Handle<'_>, $n: i64) {
                $add
            }
            #[inline(always)]
            fn read(handle: Handle<'_>) -> i64 {
                handle.read()
            }
            fn sum(&self) -> i64 {
                self.0.sum()
            }
            fn bound(&self) -> Option<u64> {
                Some(self.0.bound())
            }
        }
    )*};
}

ways! {
    /// The seed's: read, compare-exchange until it succeeds, fold under the lock.
    Kernel = "kernel", |handle, n| handle.add_by_loop(n);
    /// The second mail's: one attempt in line, and the other as slow path.
    Nested = "kernel-nested", |handle, n| {
        let count = handle.this_cpu();
        let sum = count.wrapping_add(n);
        if !handle.is_within(sum) || handle.word.compare_exchange(count, sum).is_err() {
            add_out_of_line(handle, n);
        }
    };
    /// What the seed replaced: interrupts off around all of it. Here that puts off handlers, but nobody is kept from preempting, so
    /// the word is still exchanged by a section: with an addition that was decided before, a lane could pass the batch.
    Masked = "masked", |handle, n| masked(|| {
        loop {
            let count = handle.this_cpu();
            let sum = count.wrapping_add(n);
            if !handle.is_within(sum) {
                return fold_masked(handle, n);
            }
            if handle.word.compare_exchange(count, sum).is_ok() {
                return;
            }
        }
    });
}
