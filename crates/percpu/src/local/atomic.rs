//! `atomic_long_t`: a locked instruction.
//!
//! Safe everywhere, even from other threads, and the only way here that pays for what it does not
//! need: the lock serialises the CPU's memory accesses, though no other CPU wants the line.

use core::sync::atomic::{AtomicI64, Ordering::Relaxed};

use super::{Context, LocalCounter};

/// A word changed with locked instructions.
///
/// Where: thread, handler, nested handler, fault handler; other threads too. Memory: 8 bytes.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Atomic(AtomicI64);

impl LocalCounter for Atomic {
    const NAME: &'static str = "atomic";
    const CONTEXTS: &'static [Context] = &[
        Context::Thread,
        Context::Handler,
        Context::NestedHandler,
        Context::FaultHandler,
    ];
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
        self.0.fetch_add(n, Relaxed);
    }

    #[inline(always)]
    fn add_return(&self, n: i64) -> i64 {
        self.0.fetch_add(n, Relaxed).wrapping_add(n)
    }
}
