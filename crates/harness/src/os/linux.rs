//! Linux: affinity, the thread's CPU clock, the kernel's name.

use std::io;

use rustix::thread::CpuSet;
use rustix::time::{ClockId, clock_gettime};

/// The CPUs that this thread may run on, ascending. `None` if the kernel does not say, which is
/// also the case where it has more CPUs than a `cpu_set_t` has bits (1,024).
pub(crate) fn allowed_cpus() -> Option<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None).ok()?;
    Some(
        (0..CpuSet::MAX_CPU)
            .filter(|&cpu| set.is_set(cpu))
            .collect(),
    )
}

/// Lets this thread run on one CPU only.
pub(crate) fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// CPU time of this thread, in ns.
pub(crate) fn thread_cpu_ns() -> Option<u64> {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let ns = u64::try_from(time.tv_nsec).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// The kernel's release, as `uname -r` prints it.
pub(crate) fn kernel_release() -> Option<String> {
    let name = rustix::system::uname();
    Some(name.release().to_string_lossy().into_owned())
}

/// Bytes in a page.
pub(crate) fn page_size() -> Option<usize> {
    Some(rustix::param::page_size())
}
