//! The facts, in the form in which `--json` prints them.

use std::collections::BTreeMap;
use std::path::Path;

use countersink::clock::Source;
use countersink_harness::machine::Machine;
use countersink_percpu::{Fence, Mechanism, Reason, Registrar, Segment, choice};
use serde::Serialize;

use super::{advice, cpu, os, unknown};

/// The name of the form.
const SCHEMA: &str = "countersink-doctor/1";

/// All of it.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    /// [`SCHEMA`].
    pub(super) schema: &'static str,
    /// What is used here, and why.
    pub(super) mechanism: MechanismFacts,
    /// Where a program's metrics are, started as this one.
    pub(super) region: Region,
    /// Restartable sequences.
    pub(super) rseq: Rseq,
    /// Stopping the sections of other threads.
    pub(super) membarrier: Membarrier,
    /// As in the results of `bench`.
    pub(super) machine: Machine,
    /// What the CPU can do, of what matters here; empty where it does not tell.
    pub(super) cpu_flags: Vec<Flag>,
    /// Reading time.
    pub(super) clock: Clock,
    /// Hardware counters.
    pub(super) perf: Perf,
    /// Memory.
    pub(super) memory: Memory,
    /// Why facts are not known, by their path, such as `machine.governor`.
    pub(super) unknown: BTreeMap<&'static str, String>,
    /// What could be better, and how.
    pub(super) advice: Vec<String>,
}

/// What this process uses.
#[derive(Debug, Serialize)]
pub(super) struct MechanismFacts {
    /// `rseq`, `locked_lanes` or `thread_lanes`.
    pub(super) name: &'static str,
    /// In words.
    pub(super) sentence: String,
    /// Who registers threads: `libc` or `own`.
    pub(super) registrar: Option<&'static str>,
    /// The kernel's error number, if it refused to register a thread.
    pub(super) refused_errno: Option<u16>,
    /// The CPU lanes of each segment.
    pub(super) cpu_lanes: u32,
    /// The address space of each segment.
    pub(super) segment_bytes: Option<usize>,
}

/// Where metrics are.
#[derive(Debug, Serialize)]
pub(super) struct Region {
    /// What they lie in.
    pub(super) place: String,
    /// Why they are not where they were to be; empty if they are.
    pub(super) hindrance: String,
    /// Room for so many metrics.
    pub(super) metrics: u32,
    /// What spans are measured with: `cycles`, `cycles_of_each_cpu` or `monotonic`.
    pub(super) span_clock: &'static str,
}

/// What there is of restartable sequences.
#[derive(Debug, Default, Serialize)]
pub(super) struct Rseq {
    /// What the system call says: `present`, or why not.
    pub(super) system_call: Option<String>,
    /// How much of `struct rseq` the kernel fills (auxiliary vector); `null` before Linux 6.3.
    pub(super) feature_size_bytes: Option<u64>,
    /// How it must be aligned (auxiliary vector); `null` before Linux 6.3.
    pub(super) alignment_bytes: Option<u64>,
    /// The C library's `__rseq_size`: 0 if it does not register threads, `null` if it does not know of
    /// rseq or the program is static.
    pub(super) libc_size_bytes: Option<u32>,
}

/// What there is of membarrier.
#[derive(Debug, Serialize)]
pub(super) struct Membarrier {
    /// The commands that the kernel knows, as far as they matter here.
    pub(super) commands: Vec<&'static str>,
    /// Whether sections can be stopped, or why not.
    pub(super) fence: String,
}

/// A property of the CPU.
#[derive(Debug, Serialize)]
pub(super) struct Flag {
    /// As the field calls it.
    pub(super) name: &'static str,
    /// Whether it is there.
    pub(super) present: bool,
    /// What for.
    pub(super) matters: &'static str,
}

/// Reading time.
#[derive(Debug, Serialize)]
pub(super) struct Clock {
    /// Whether the time stamp counter may be compared between CPUs: invariant, and the kernel's own
    /// clock source.
    pub(super) tsc_usable: bool,
    /// Why.
    pub(super) reason: String,
}

/// Hardware counters, for this process in user space: `available`, or why not.
#[derive(Debug, Default, Serialize)]
pub(super) struct Perf {
    /// CPU cycles.
    pub(super) cycles: Option<String>,
    /// Instructions.
    pub(super) instructions: Option<String>,
    /// `kernel.perf_event_paranoid`.
    pub(super) paranoid: Option<i32>,
}

/// Memory.
#[derive(Debug, Default, Serialize)]
pub(super) struct Memory {
    /// The sizes of explicit huge pages.
    pub(super) hugetlb_kib: Vec<u64>,
    /// How much may be locked; `null` is without limit or unknown.
    pub(super) memlock_limit_bytes: Option<u64>,
    /// `vm.overcommit_memory`.
    pub(super) overcommit: Option<u32>,
    /// Whether memory without a file can be shared (memfd_create): `available`, or why not.
    pub(super) memfd: Option<String>,
}

impl Facts {
    /// Asks for all of them.
    pub(super) fn gather() -> Self {
        let machine = Machine::detect();
        let mut facts = Facts {
            schema: SCHEMA,
            mechanism: MechanismFacts::gather(),
            region: Region::gather(),
            rseq: os::rseq(),
            membarrier: Membarrier {
                commands: os::membarrier_commands(),
                fence: match Fence::new() {
                    Ok(_) => "available".to_owned(),
                    Err(error) => error.to_string(),
                },
            },
            cpu_flags: cpu::flags(),
            clock: cpu::clock(machine.clocksource.as_deref()),
            perf: os::perf(),
            memory: os::memory(),
            machine,
            unknown: BTreeMap::new(),
            advice: Vec::new(),
        };
        facts.unknown = unknown::reasons(&facts, Path::new("/"));
        facts.advice = advice::of(&facts);
        facts
    }
}

impl Region {
    fn gather() -> Self {
        let status = countersink::region::status();
        Region {
            place: status.place.to_string(),
            hindrance: status.hindrance,
            metrics: status.metrics,
            span_clock: match countersink::clock::source() {
                Source::Cycles => "cycles",
                Source::CyclesOfEachCpu => "cycles_of_each_cpu",
                _ => "monotonic",
            },
        }
    }
}

impl MechanismFacts {
    fn gather() -> Self {
        let choice = choice();
        MechanismFacts {
            name: match choice.mechanism {
                Mechanism::Rseq => "rseq",
                Mechanism::LockedLanes => "locked_lanes",
                Mechanism::ThreadLanes => "thread_lanes",
                _ => "other",
            },
            sentence: choice.to_string(),
            registrar: choice.registrar().map(|registrar| match registrar {
                Registrar::Libc => "libc",
                Registrar::Own => "own",
            }),
            refused_errno: match choice.reason {
                Reason::Refused(error) => Some(error),
                _ => None,
            },
            cpu_lanes: choice.cpus,
            segment_bytes: Segment::bytes(choice.cpus).ok(),
        }
    }
}
