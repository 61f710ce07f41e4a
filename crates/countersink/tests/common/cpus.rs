//! The CPUs that this process may use, and threads on one of them.

use std::sync::OnceLock;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that this process may use: those of the first thread that asks, before it is pinned.
pub(crate) fn allowed() -> &'static [u32] {
    static ALLOWED: OnceLock<Vec<u32>> = OnceLock::new();
    ALLOWED.get_or_init(|| {
        let set = sched_getaffinity(None).expect("Linux tells the affinity");
        (0..CpuSet::MAX_CPU)
            .filter(|cpu| set.is_set(*cpu))
            .map(|cpu| cpu as u32)
            .collect()
    })
}

/// Makes this thread run on one CPU only; it is there when this returns.
pub(crate) fn pin(cpu: u32) {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    sched_setaffinity(None, &set).expect("an allowed CPU");
}

/// Lets others run.
pub(crate) fn pause() {
    rustix::thread::sched_yield();
}

/// Lets others run until something is so.
pub(crate) fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        pause();
    }
}
