//! Single instructions, and none at all: what a measurement needs and std has no safe function for.
#![allow(unsafe_code)]

use std::arch::asm;

/// The same value, of which the compiler no longer knows where it comes from: what uses it is not
/// done before the clock was read.
#[inline(always)]
pub(super) fn launder(mut value: usize) -> usize {
    // SAFETY: no instruction at all. Like a clock read it is volatile, and volatile ones stay in order.
    unsafe { asm!("/* {} */", inout(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Nothing, but the value has to be in a register: it is found before the clock is read again.
#[inline(always)]
pub(super) fn observe(value: usize) {
    // SAFETY: as above.
    unsafe { asm!("/* {} */", in(reg) value, options(nomem, nostack, preserves_flags)) };
}

/// Whether [`evict`] does anything.
pub(super) const CAN_EVICT: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Moves what was referred to out of all caches, before anything that follows.
#[inline(always)]
pub(super) fn evict<T>(what: &T) {
    let line = std::ptr::from_ref(what);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: changes where memory is cached, not what it holds; both are in every x86-64.
    unsafe {
        std::arch::x86_64::_mm_clflush(line.cast());
        std::arch::x86_64::_mm_mfence();
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; Linux allows it to programs.
    unsafe {
        asm!("dc civac, {}", "dsb ish", in(reg) line, options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = line;
}

/// The cycle counter, as fast as it can be read: it does not wait for what comes before it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn rdtsc() -> u64 {
    // SAFETY: reads a register; processes that may not are killed by any clock.
    unsafe { std::arch::x86_64::_rdtsc() }
}
