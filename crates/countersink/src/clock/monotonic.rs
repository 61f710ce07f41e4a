//! The monotonic clock, and the CPU by a call of its own.

use super::Moment;

#[cfg(all(target_os = "linux", not(countersink_portable)))]
pub(super) fn nanoseconds() -> u64 {
    crate::os::monotonic_time()
}

#[cfg(not(all(target_os = "linux", not(countersink_portable))))]
pub(super) fn nanoseconds() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    // From 1 on, so that no moment is 0.
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1
}

#[cfg(all(target_os = "linux", not(countersink_portable)))]
fn cpu() -> u32 {
    crate::os::current_cpu()
}

#[cfg(not(all(target_os = "linux", not(countersink_portable))))]
fn cpu() -> u32 {
    0
}

/// The clock is the same on all CPUs. Its reading belongs to a CPU if the thread was there before and
/// after; if it was moved, it is read again.
#[inline(never)]
pub(super) fn now() -> Moment {
    let mut before = cpu();
    loop {
        let ticks = nanoseconds();
        let after = cpu();
        if before == after {
            return Moment { ticks, cpu: after };
        }
        before = after;
    }
}
