//! `local_t`: one unlocked instruction that reads, changes and writes memory.
//!
//! An interrupt, and so a signal, comes before or after an instruction, never within. Where the
//! architecture has no such instruction, nothing unlocked is right for a single word: a handler
//! between the load and the store would be overwritten, and a conditional store notices it only on
//! architectures with load-linked, which is what an atomic addition is made of there. So elsewhere
//! this is the atomic addition, and [`TriValue`](super::TriValue) the cheaper way.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicI64, Ordering::Relaxed};

use super::{Context, LocalCounter, ThreadOwned};

/// A word changed by one instruction without a lock.
///
/// Where: thread, handler, nested handler, fault handler. Memory: 8 bytes.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Local(AtomicI64, ThreadOwned);

impl LocalCounter for Local {
    const NAME: &'static str = "local";
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
    fn inc(&self) {
        add_one(&self.0);
    }

    #[inline(always)]
    fn add(&self, n: i64) {
        add(&self.0, n);
    }

    #[inline(always)]
    fn add_return(&self, n: i64) -> i64 {
        exchange_add(&self.0, n).wrapping_add(n)
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn add_one(word: &AtomicI64) {
    // SAFETY: one instruction on a word that this thread alone changes.
    unsafe { core::arch::asm!("inc qword ptr [{}]", in(reg) word.as_ptr(), options(nostack)) };
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn add(word: &AtomicI64, n: i64) {
    // SAFETY: as above.
    unsafe {
        core::arch::asm!("add qword ptr [{}], {}", in(reg) word.as_ptr(), in(reg) n, options(nostack));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn exchange_add(word: &AtomicI64, n: i64) -> i64 {
    let before;
    // SAFETY: as above. xadd with a memory operand is one instruction; without the prefix it locks
    // nothing, unlike xchg.
    unsafe {
        core::arch::asm!(
            "xadd qword ptr [{}], {}", in(reg) word.as_ptr(), inout(reg) n => before, options(nostack)
        );
    }
    before
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn add_one(word: &AtomicI64) {
    word.fetch_add(1, Relaxed);
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn add(word: &AtomicI64, n: i64) {
    word.fetch_add(n, Relaxed);
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn exchange_add(word: &AtomicI64, n: i64) -> i64 {
    word.fetch_add(n, Relaxed)
}
