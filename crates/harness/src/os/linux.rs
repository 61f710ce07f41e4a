//! Linux: affinity, the thread's CPU clock, what disturbs it, the kernel's name.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use nix::sys::resource::{UsageWho, getrusage};
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

/// The CPU that this thread runs on.
pub(crate) fn current_cpu() -> Option<usize> {
    Some(rustix::thread::sched_getcpu())
}

/// What happened to this thread until now.
pub(crate) fn thread_usage() -> Option<super::Usage> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
    let count = |value| u64::try_from(value).ok();
    Some(super::Usage {
        involuntary: count(usage.involuntary_context_switches())?,
        voluntary: count(usage.voluntary_context_switches())?,
        faults: count(usage.minor_page_faults())? + count(usage.major_page_faults())?,
    })
}

/// How long this thread was ready to run while others ran, in ns. `None` where the kernel keeps no
/// statistics of its scheduler.
pub(crate) fn thread_waited_ns() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

/// How often this thread was moved to another CPU. `None` where the kernel does not tell.
pub(crate) fn thread_migrations() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/sched").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("se.nr_migrations"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

/// What the hypervisor took of these CPUs until now, in ns, in steps of the kernel's clock tick (10 ms).
pub(crate) fn steal_ns(cpus: &BTreeSet<usize>) -> Option<u64> {
    let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
    let text = fs::read_to_string("/proc/stat").ok()?;
    let mut ticks = 0;
    for cpu in cpus {
        let name = format!("cpu{cpu} ");
        let line = text.lines().find(|line| line.starts_with(&name))?;
        // user nice system idle iowait irq softirq steal
        ticks += line.split_whitespace().nth(8)?.parse::<u64>().ok()?;
    }
    Some(ticks * (1_000_000_000 / ticks_per_second))
}
