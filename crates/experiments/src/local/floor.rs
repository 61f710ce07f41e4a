//! What a count is held against: an unprotected addition, and the loop without one.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use countersink_percpu::local::{Context, LocalCounter};

use super::counters::{Counters, View};

/// The floor: an addition to the thread's own memory with no protection at all.
///
/// Load, addition and store are apart in the source; compilers make one instruction of them where
/// there is one.
#[derive(Debug, Default)]
pub(super) struct Plain(AtomicI64);

impl LocalCounter for Plain {
    const NAME: &'static str = "plain";
    const CONTEXTS: &'static [Context] = &[Context::Thread];
    const BYTES: usize = size_of::<Self>();

    #[inline(always)]
    fn read(&self) -> i64 {
        self.0.load(Relaxed)
    }

    #[inline(always)]
    fn set(&self, value: i64) {
        self.0.store(value, Relaxed);
    }

    #[inline(always)]
    fn add(&self, n: i64) {
        self.set(self.read().wrapping_add(n));
    }

    #[inline(always)]
    fn add_return(&self, n: i64) -> i64 {
        self.add(n);
        self.read()
    }
}

/// Nothing: the loop alone, with the index in a register. Shown, never subtracted.
#[derive(Debug)]
pub(super) struct NoCounters;

/// See [`NoCounters`].
#[derive(Clone, Copy, Debug)]
pub(super) struct NoView;

/// See [`NoCounters`].
#[derive(Clone, Copy, Debug)]
pub(super) struct NoCounter(usize);

impl Counters for NoCounters {
    type View<'a> = NoView;
    fn new() -> Result<Self, String> {
        Ok(NoCounters)
    }
    fn view(&self) -> NoView {
        NoView
    }
    const COUNT: usize = 0;
}

impl View for NoView {
    type Way = NoCounter;
    #[inline(always)]
    fn at(self, index: usize) -> NoCounter {
        NoCounter(index)
    }
}

impl LocalCounter for NoCounter {
    const NAME: &'static str = "loop";
    const CONTEXTS: &'static [Context] = &[];
    const BYTES: usize = 0;

    #[inline(always)]
    fn read(&self) -> i64 {
        // SAFETY: no instruction at all; the index has to be in a register.
        unsafe {
            std::arch::asm!("/* {} */", in(reg) self.0, options(nomem, nostack, preserves_flags))
        };
        0
    }

    #[inline(always)]
    fn set(&self, _: i64) {}

    #[inline(always)]
    fn add(&self, _: i64) {
        self.read();
    }

    #[inline(always)]
    fn add_return(&self, _: i64) -> i64 {
        self.read()
    }
}
