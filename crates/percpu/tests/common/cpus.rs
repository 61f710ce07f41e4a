//! The CPUs that this process may use, and threads on one of them.

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

/// The CPUs that this thread may use.
pub(crate) fn allowed() -> Vec<u32> {
    let set = sched_getaffinity(None).expect("Linux tells the affinity");
    (0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .map(|cpu| cpu as u32)
        .collect()
}

/// Makes a thread (`None`: this one) run on one CPU only; it is there when this returns.
pub(crate) fn pin(thread: Option<Pid>, cpu: u32) {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    sched_setaffinity(thread, &set).expect("an allowed CPU");
}

/// Runs a function in a new thread on one CPU.
pub(crate) fn on<R: Send>(cpu: u32, function: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            pin(None, cpu);
            function()
        });
        // What went wrong has been printed by the thread.
        thread.join().expect("the thread on one CPU ends well")
    })
}

/// The CPU that this thread is on, just now.
pub(crate) fn current() -> u32 {
    rustix::thread::sched_getcpu() as u32
}
