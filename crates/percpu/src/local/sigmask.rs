//! `local_irq_save` and `local_irq_restore`, taken literally: all signals are blocked around a plain
//! addition.
//!
//! Two system calls for each bump. The kernel's own form costs a few instructions; see
//! [`Deferred`](super::Deferred) for the form that user space can afford.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI64, Ordering::Relaxed};

use super::{Context, LocalCounter, ThreadOwned};

/// A word changed with all signals blocked.
///
/// Where: thread, handler, nested handler. Not where a fault handler can come in between: a fault
/// cannot be blocked. Memory: 8 bytes.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Sigmask(AtomicI64, ThreadOwned);

impl Sigmask {
    /// Plain load and store; the atomic type keeps the compiler from splitting or repeating them.
    #[inline(always)]
    fn with_signals_blocked(&self, change: impl FnOnce(i64) -> i64) -> i64 {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the calls fill both sets and cannot fail with these operands; the system call also
        // keeps the compiler from moving memory accesses across it.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        }
        let value = change(self.0.load(Relaxed));
        self.0.store(value, Relaxed);
        // SAFETY: the set that the first call filled.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut()) };
        value
    }
}

impl LocalCounter for Sigmask {
    const NAME: &'static str = "sigmask";
    const CONTEXTS: &'static [Context] =
        &[Context::Thread, Context::Handler, Context::NestedHandler];
    const BYTES: usize = size_of::<Self>();

    #[inline(always)]
    fn read(&self) -> i64 {
        self.0.load(Relaxed)
    }

    #[inline(always)]
    fn set(&self, value: i64) {
        // One store; there is nothing to protect.
        self.0.store(value, Relaxed);
    }

    #[inline(always)]
    fn add(&self, n: i64) {
        self.with_signals_blocked(|value| value.wrapping_add(n));
    }

    #[inline(always)]
    fn add_return(&self, n: i64) -> i64 {
        self.with_signals_blocked(|value| value.wrapping_add(n))
    }
}
