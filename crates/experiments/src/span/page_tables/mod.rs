//! The seed's other sites, from outside: what it costs a program when the kernel makes and frees the
//! pages of its page tables.
//!
//! The seed times `pte_alloc_one` and its like inside the kernel. A program sees the whole fault, or the
//! whole system call, around them. So each level is timed as the first touch of memory that needs that
//! level's page and all below it, and only the difference from the level below says what the page costs:
//!
//! - `page_touch`: the first touch of a page whose tables are all there;
//! - `pte_alloc`: of a fresh 2 MiB, which needs a page of ptes;
//! - `pmd_alloc`: of a fresh 1 GiB, which needs a page of pmds as well;
//! - `pud_alloc`: of a fresh 512 GiB, which needs a page of puds as well;
//! - `page_unmap`, `pte_free`, `pmd_free`, `pud_free`: `munmap` of each, the one page in it included;
//! - `pgd_alloc`: `fork`, seen by the parent; `pgd_free`: from then until the child, which exits at once,
//!   was waited for. The kernel makes and frees a pgd at no other time, and copies and tears down the
//!   whole address space with it, so these two are far from it.
//!
//! Levels alternate A B B A, round after round, on one pinned thread. Memory is 4 KiB pages, no huge ones.

#[cfg(target_os = "linux")]
mod address_space;
#[cfg(target_os = "linux")]
mod sample;

use countersink_harness::result::{ModeName, PointResult};
use countersink_harness::schedule::WARM_UP_SAMPLES;
use countersink_harness::surroundings::Surroundings;

use super::readings::{Figure, Reading};

/// A level of the page tables, as a program can meet it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// What making it is called: the seed's name where it has one.
    pub alloc: &'static str,
    /// What freeing it is called.
    pub free: &'static str,
    /// What is touched for the first time, and what it includes.
    pub touched: &'static str,
    /// Bytes from one event to the next: what one page of the level below maps.
    step: usize,
    /// Bytes that a page of this level maps, so that all events of a sample share one.
    whole: usize,
    /// Events of a sample.
    events: usize,
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
#[cfg(target_pointer_width = "64")]
const GIB: usize = 1 << 30;

/// The levels that can be touched, from the page up.
pub const LEVELS: &[Level] = &[
    Level {
        alloc: "page_touch",
        free: "page_unmap",
        touched: "a page whose tables are there",
        step: 4 * KIB,
        whole: 2 * MIB,
        events: 256,
    },
    #[cfg(target_pointer_width = "64")]
    Level {
        alloc: "pte_alloc",
        free: "pte_free",
        touched: "a page in a fresh 2 MiB",
        step: 2 * MIB,
        whole: GIB,
        events: 128,
    },
    #[cfg(target_pointer_width = "64")]
    Level {
        alloc: "pmd_alloc",
        free: "pmd_free",
        touched: "a page in a fresh 1 GiB",
        step: GIB,
        whole: 512 * GIB,
        events: 32,
    },
    #[cfg(target_pointer_width = "64")]
    Level {
        alloc: "pud_alloc",
        free: "pud_free",
        touched: "a page in a fresh 512 GiB",
        step: 512 * GIB,
        // A pgd maps all there is.
        whole: 512 * GIB,
        events: 4,
    },
];

/// What making a process is called.
pub const PGD_ALLOC: &str = "pgd_alloc";
/// What its end is called.
pub const PGD_FREE: &str = "pgd_free";
/// Processes of a sample.
pub const FORKS: usize = 4;

/// The only variant.
pub const VARIANT: &str = "kernel";
/// The only pattern.
pub const PATTERN: &str = "page-tables";

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct PageTables {
    /// What each span showed.
    pub readings: Vec<Reading>,
    /// Levels that could not be timed, and why.
    pub missing: Vec<(&'static str, String)>,
    /// The CPU that the thread was pinned to.
    pub cpu: Option<usize>,
    /// What each sample met, those to warm up included, by what was allocated in it.
    pub met: Vec<(&'static str, Surroundings)>,
}

impl PageTables {
    /// The averages of the samples, in the form of results.
    pub fn points(&self) -> Vec<PointResult> {
        let point = |reading: &Reading| {
            let samples = reading.figures(Figure::Average);
            let key = (reading.op.as_str(), reading.pattern.as_str(), 1);
            Some(PointResult {
                mode: ModeName::Fixed,
                iterations: reading.samples().first().map(|sample| sample.events),
                pinned: self.cpu.is_some(),
                shared_cores: Some(false),
                cpus: self.cpu.into_iter().collect(),
                surroundings: self.met_by(&reading.op),
                ..PointResult::of(&reading.variant, key, samples)?
            })
        };
        self.readings.iter().filter_map(point).collect()
    }

    /// What the samples met in which a span was recorded.
    fn met_by(&self, span: &str) -> Vec<Surroundings> {
        let level = LEVELS
            .iter()
            .find(|level| [level.alloc, level.free].contains(&span));
        let name = level.map_or(PGD_ALLOC, |level| level.alloc);
        let met = self.met.iter().filter(|(of, _)| *of == name);
        met.skip(WARM_UP_SAMPLES)
            .map(|(_, met)| met.clone())
            .collect()
    }

    /// The reading of a span.
    pub fn find(&self, span: &str) -> Option<&Reading> {
        self.readings.iter().find(|reading| reading.op == span)
    }
}

/// Times so many rounds of all levels, once warm.
///
/// # Errors
/// If a thread could not be started; elsewhere than on Linux with pages of 4 KiB, why there is nothing.
#[cfg(target_os = "linux")]
pub fn run(rounds: usize) -> Result<PageTables, String> {
    use countersink_harness::cpus::Topology;

    let page = address_space::page_size();
    if page != 4 * KIB {
        return Err(format!(
            "pages have {} KiB here, and other levels",
            page / KIB
        ));
    }
    let placement = Topology::detect().place(1);
    let thread = std::thread::Builder::new().spawn(move || {
        let cpu = placement.pin(0);
        sample::rounds(rounds, cpu)
    });
    let thread = thread.map_err(|error| format!("a thread could not be started: {error}"))?;
    thread
        .join()
        .map_err(|_| "the measuring thread panicked".to_owned())
}

/// Nothing: these are Linux's page tables.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn run(_rounds: usize) -> Result<PageTables, String> {
    Err("page tables are timed on Linux only".to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_timed_once() {
        let found = run(6).expect("a run");
        for (name, reason) in &found.missing {
            // Limits may keep addresses and processes away; events are never lost.
            assert!(reason.starts_with("no "), "{name}: {reason}");
        }
        for level in LEVELS {
            if found.missing.iter().any(|(name, _)| *name == level.alloc) {
                continue;
            }
            for name in [level.alloc, level.free] {
                let reading = found.find(name).expect(name);
                // One to warm up, and two in each of six rounds.
                assert_eq!(reading.all.len(), 13, "{name}");
                assert_eq!(reading.recorded(), 13 * level.events as u64, "{name}");
                assert_eq!(reading.figures(Figure::Average).len(), 12, "{name}");
            }
        }
        if found.missing.iter().all(|(name, _)| *name != PGD_ALLOC) {
            for name in [PGD_ALLOC, PGD_FREE] {
                let reading = found.find(name).expect(name);
                assert_eq!(reading.recorded(), 13 * FORKS as u64);
            }
        }
        for point in found.points() {
            assert_eq!(point.surroundings.len(), point.samples.len());
            assert!(point.surroundings.iter().all(|met| met.faults.is_none()));
        }
    }

    #[test]
    fn all_events_of_a_sample_share_the_level_above() {
        for level in LEVELS {
            assert!(level.whole == level.step || (level.events + 1) * level.step <= level.whole);
            assert!(level.whole.is_multiple_of(level.step));
        }
    }
}
