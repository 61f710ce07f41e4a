//! What could be better here, and how.

use super::facts::Facts;

/// A sentence for each thing that is missing.
pub(super) fn of(facts: &Facts) -> Vec<String> {
    let mut advice = Vec::new();
    let mechanism = &facts.mechanism;
    if mechanism.refused_errno.is_some() {
        advice.push(
            "Threads cannot be registered for restartable sequences, so every count is a locked \
             instruction. Under a container or sandbox, allow the system call rseq in its seccomp \
             profile; old profiles do not know it."
                .to_owned(),
        );
    }
    if mechanism.registrar == Some("own") && facts.rseq.libc_size_bytes == Some(0) {
        advice.push(
            "The C library's registration is off (GLIBC_TUNABLES=glibc.pthread.rseq=0). Counting works \
             all the same; each thread registers itself at its first count."
                .to_owned(),
        );
    }
    if mechanism.name == "rseq" && facts.membarrier.fence != "available" {
        advice.push(
            "Sections cannot be stopped from other threads, which takes Linux 5.10; what needs that \
             falls back."
                .to_owned(),
        );
    }
    if cfg!(target_os = "linux") && !facts.clock.tsc_usable {
        advice.push(format!(
            "Time is read from the kernel's monotonic clock, not from the time stamp counter: {}.",
            facts.clock.reason
        ));
    }
    if facts
        .machine
        .cpus_allowed
        .as_deref()
        .is_some_and(|cpus| !cpus.contains(['-', ',']))
    {
        advice.push(
            "This process may use one CPU only: nothing measured here shows what several CPUs do to \
             each other."
                .to_owned(),
        );
    }
    if facts
        .machine
        .governor
        .as_deref()
        .is_some_and(|governor| governor != "performance")
    {
        advice.push(
            "The CPU's frequency may change while something is measured; for comparisons, choose the \
             governor performance."
                .to_owned(),
        );
    }
    advice
}
