//! The cycle counter.
#![allow(unsafe_code)]

use super::Moment;

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(countersink_portable)))]
mod x86_64 {
    use core::arch::x86_64::{__cpuid, __rdtscp};

    use super::Moment;

    /// Whether `rdtscp` is there and allowed.
    pub(crate) fn exist() -> bool {
        __cpuid(0x8000_0000).eax >= 0x8000_0001
            && __cpuid(0x8000_0001).edx & 1 << 27 != 0
            && crate::os::may_read_cycles()
    }

    /// Whether it ticks at one rate, whatever the CPU does.
    pub(crate) fn are_invariant() -> bool {
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
    }

    /// Linux puts the CPU's number into the low 12 bits of what comes with the counter.
    #[inline(always)]
    pub(crate) fn now() -> Moment {
        let mut cpu = 0;
        // SAFETY: exist() was asked when the clock was chosen.
        let ticks = unsafe { __rdtscp(&mut cpu) };
        Moment {
            ticks,
            cpu: cpu & 0xfff,
        }
    }
}
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(countersink_portable)))]
pub(super) use x86_64::{are_invariant, exist, now};

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(countersink_portable))))]
mod none {
    use super::Moment;

    pub(crate) fn exist() -> bool {
        false
    }

    pub(crate) fn are_invariant() -> bool {
        false
    }

    pub(crate) fn now() -> Moment {
        super::super::monotonic::now()
    }
}
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(countersink_portable))))]
pub(super) use none::{are_invariant, exist, now};
