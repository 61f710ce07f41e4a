//! Two words at once: what the standard library has no atomic type for.
//!
//! On x86-64 these are single instructions, so they hold between processes and in signal handlers,
//! which a library that falls back on a lock does not offer. `lock cmpxchg16b` is missing on the first
//! x86-64 CPUs only (2003 to 2005).
#![allow(unsafe_code)]

/// Stores `new` if memory holds `old`; what it held.
///
/// # Safety
/// `word` is 16-byte aligned and mapped while the call lasts, and nobody writes it but with locked
/// instructions.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn compare_exchange(word: *mut u64, old: [u64; 2], new: [u64; 2]) -> [u64; 2] {
    let (low, high);
    // SAFETY: the caller's promise. rbx cannot be an operand by name, and is put back. It must not be
    // where the address is either, which the compiler is free to choose unless that has a name.
    unsafe {
        core::arch::asm!(
            "xchg {first}, rbx",
            "lock cmpxchg16b xmmword ptr [rdi]",
            "mov rbx, {first}",
            in("rdi") word,
            first = inout(reg) new[0] => _,
            in("rcx") new[1],
            inout("rax") old[0] => low,
            inout("rdx") old[1] => high,
            options(nostack),
        );
    }
    [low, high]
}

/// Both words at one moment, on CPUs with AVX; one after the other on older ones.
///
/// # Safety
/// `word` is 16-byte aligned and mapped while the call lasts.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn load(word: *mut u64) -> [u64; 2] {
    let both: core::arch::x86_64::__m128i;
    // SAFETY: the caller's promise; every bit pattern is two words.
    unsafe {
        core::arch::asm!(
            "movdqa {}, xmmword ptr [{}]",
            out(xmm_reg) both,
            in(reg) word,
            options(nostack, preserves_flags, readonly),
        );
        core::mem::transmute(both)
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod portable {
    use core::sync::atomic::Ordering::{AcqRel, Acquire};

    use portable_atomic::AtomicU128;

    /// # Safety
    /// As [`compare_exchange`].
    unsafe fn atomic<'a>(word: *mut u64) -> &'a AtomicU128 {
        // SAFETY: the caller's promise.
        unsafe { AtomicU128::from_ptr(word.cast()) }
    }

    fn join(words: [u64; 2]) -> u128 {
        // SAFETY: two words and a wide one are the same bytes.
        unsafe { core::mem::transmute(words) }
    }

    fn split(wide: u128) -> [u64; 2] {
        // SAFETY: as above.
        unsafe { core::mem::transmute(wide) }
    }

    /// Stores `new` if memory holds `old`; what it held. A lock inside this process where the
    /// architecture has no such instruction.
    ///
    /// # Safety
    /// `word` is 16-byte aligned and mapped while the call lasts, and nobody writes it otherwise.
    pub(crate) unsafe fn compare_exchange(
        word: *mut u64,
        old: [u64; 2],
        new: [u64; 2],
    ) -> [u64; 2] {
        // SAFETY: the caller's promise.
        let atomic = unsafe { atomic(word) };
        match atomic.compare_exchange(join(old), join(new), AcqRel, Acquire) {
            Ok(held) | Err(held) => split(held),
        }
    }

    /// Both words at one moment.
    ///
    /// # Safety
    /// As [`compare_exchange`].
    pub(crate) unsafe fn load(word: *mut u64) -> [u64; 2] {
        // SAFETY: the caller's promise.
        split(unsafe { atomic(word) }.load(Acquire))
    }
}
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use portable::{compare_exchange, load};
