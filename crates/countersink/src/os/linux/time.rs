//! Clocks, and the CPU, by the C library: what it reads in user space costs no system call, and where a
//! sandbox refuses the call there is an error and no panic.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::keeping_errno;

/// `CLOCK_REALTIME` in nanoseconds.
pub(crate) fn real_time() -> u64 {
    nanoseconds(libc::CLOCK_REALTIME)
}

/// `CLOCK_MONOTONIC` in nanoseconds.
#[inline]
pub(crate) fn monotonic_time() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC)
}

/// The CPU of this thread; one that there cannot be if it is not told.
#[inline]
pub(crate) fn current_cpu() -> u32 {
    // SAFETY: no preconditions.
    keeping_errno(|| unsafe { libc::sched_getcpu() }).map_or(u32::MAX, |cpu| cpu as u32)
}

/// 0 if the clock cannot be read.
#[inline]
fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    let place = time.as_mut_ptr();
    let read = if may_read_cycles() {
        // SAFETY: writes the structure if it succeeds.
        keeping_errno(|| unsafe { libc::clock_gettime(clock, place) })
    } else {
        // SAFETY: as above. The C library would read the cycle counter.
        keeping_errno(|| unsafe { libc::syscall(libc::SYS_clock_gettime, clock, place) })
    };
    if read.is_err() {
        return 0;
    }
    // SAFETY: written above.
    let time = unsafe { time.assume_init() };
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

const UNKNOWN: u8 = 0;
const ALLOWED: u8 = 1;
const DEADLY: u8 = 2;

/// Whether reading the cycle counter is no deadly signal, as `prctl(PR_SET_TSC)` makes it. Asked once.
#[inline]
pub(crate) fn may_read_cycles() -> bool {
    static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);
    match ANSWER.load(Relaxed) {
        UNKNOWN => {
            let allowed = ask();
            ANSWER.store(if allowed { ALLOWED } else { DEADLY }, Relaxed);
            allowed
        }
        answer => answer == ALLOWED,
    }
}

#[cold]
fn ask() -> bool {
    let mut mode: core::ffi::c_int = 0;
    // SAFETY: the kernel writes an int.
    let call = || unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_TSC, &raw mut mode) };
    // Only x86 has it; and who may not ask has not been able to forbid it, most likely.
    keeping_errno(call).is_err() || mode == libc::PR_TSC_ENABLE
}
