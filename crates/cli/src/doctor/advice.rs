//! What could be better here, and how.

use super::facts::Facts;
use super::os;

/// Clock sources that are read without a system call.
const QUICK_CLOCKS: [&str; 4] = [
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
];

/// A sentence or two for each thing that is missing.
pub(super) fn of(facts: &Facts) -> Vec<String> {
    let advice = [
        locked(facts),
        libc_off(facts),
        fence(facts),
        lanes(facts),
        clock(facts),
        one_cpu(facts),
        governor(facts),
        neighbours(facts),
    ];
    advice.into_iter().flatten().collect()
}

fn locked(facts: &Facts) -> Option<String> {
    let mechanism = &facts.mechanism;
    if mechanism.name == "rseq" {
        return None;
    }
    let cost = "Every count is a locked instruction, which costs more than a section";
    Some(match mechanism.refused_errno {
        Some(errno) => format!(
            "Threads cannot be registered for restartable sequences. {cost}. {}",
            os::refusal(errno)
        ),
        None => format!("{cost}; the mechanism's line says why."),
    })
}

fn libc_off(facts: &Facts) -> Option<String> {
    let off = facts.mechanism.registrar == Some("own") && facts.rseq.libc_size_bytes == Some(0);
    off.then(|| {
        "The C library's registration is off (GLIBC_TUNABLES=glibc.pthread.rseq=0). Counting works \
         all the same; each thread registers itself at its first count."
            .to_owned()
    })
}

fn fence(facts: &Facts) -> Option<String> {
    let missing = facts.mechanism.name == "rseq" && facts.membarrier.fence != "available";
    missing.then(|| {
        "Sections cannot be stopped from other threads, which takes Linux 5.10; what needs that \
         falls back: every PercpuRwSem is an RwSem."
            .to_owned()
    })
}

fn lanes(facts: &Facts) -> Option<String> {
    let guessed = cfg!(all(target_os = "linux", not(countersink_portable)))
        && facts.machine.cpus_possible.is_none();
    guessed.then(|| {
        format!(
            "The possible CPUs cannot be read, so segments have a lane for each CPU that the kernel's \
             masks have room for: {}. Sums read them all.",
            facts.mechanism.cpu_lanes
        )
    })
}

fn clock(facts: &Facts) -> Option<String> {
    let source = facts.machine.clocksource.as_deref()?;
    (!QUICK_CLOCKS.contains(&source)).then(|| {
        format!(
            "The kernel's clock source is {source}: reading the time may take a system call, which \
             short measurements feel."
        )
    })
}

fn neighbours(facts: &Facts) -> Option<String> {
    let hypervisor = facts.machine.hypervisor.as_deref();
    let shared = hypervisor.is_some_and(|name| name != "none");
    shared.then(|| {
        "This is a virtual machine: times vary with what its neighbours do. Compare within one run \
         only."
            .to_owned()
    })
}

fn one_cpu(facts: &Facts) -> Option<String> {
    let allowed = facts.machine.cpus_allowed.as_deref()?;
    (!allowed.contains(['-', ','])).then(|| {
        "This process may use one CPU only: nothing measured here shows what several CPUs do to each \
         other."
            .to_owned()
    })
}

fn governor(facts: &Facts) -> Option<String> {
    let governor = facts.machine.governor.as_deref()?;
    (governor != "performance").then(|| {
        "The CPU's frequency may change while something is measured; for comparisons, choose the \
         governor performance."
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locked_lanes_are_never_called_complete() {
        let mut facts = Facts::gather();
        facts.mechanism.name = "locked_lanes";
        facts.mechanism.refused_errno = None;
        assert!(locked(&facts).is_some_and(|text| text.contains("locked instruction")));
        facts.mechanism.name = "rseq";
        assert_eq!(locked(&facts), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn each_error_has_its_remedy() {
        let mut facts = Facts::gather();
        facts.mechanism.name = "locked_lanes";
        for (errno, word) in [
            (libc::EPERM, "sandbox"),
            (libc::ENOSYS, "4.18"),
            (libc::EINVAL, "Something else"),
            (libc::EBUSY, "Something else"),
            (libc::ENOMEM, "error number"),
        ] {
            facts.mechanism.refused_errno = u16::try_from(errno).ok();
            let advice = locked(&facts).expect("advice");
            assert!(advice.contains(word), "{errno}: {advice}");
        }
    }

    #[test]
    fn only_slow_clocks_are_spoken_of() {
        let mut facts = Facts::gather();
        for (source, speak) in [
            (Some("hpet"), true),
            (Some("acpi_pm"), true),
            (Some("kvm-clock"), false),
            (Some("tsc"), false),
            (None, false),
        ] {
            facts.machine.clocksource = source.map(str::to_owned);
            assert_eq!(clock(&facts).is_some(), speak, "{source:?}");
        }
    }
}
