//! Samples of the levels.

use countersink::Span;
use countersink_harness::clock::RealClock;
use countersink_harness::runner::Sample;
use countersink_harness::schedule::{self, WARM_UP_SAMPLES};
use countersink_harness::surroundings::{Steal, Surroundings, Watch};

use super::address_space::{AddressSpace, Child};
use super::{FORKS, LEVELS, Level, PATTERN, PGD_ALLOC, PGD_FREE, PageTables, VARIANT};
use crate::span::readings::{GROUPING, Readings};

static PAGE_TOUCH: Span = timed("page_touch", "First touches of a page");
static PAGE_UNMAP: Span = timed("page_unmap", "munmap of a page");
static PTE_ALLOC_SPAN: Span = timed("pte_alloc", "First touches of a fresh 2 MiB");
static PTE_FREE_SPAN: Span = timed("pte_free", "munmap of 2 MiB with one page");
static PMD_ALLOC_SPAN: Span = timed("pmd_alloc", "First touches of a fresh 1 GiB");
static PMD_FREE_SPAN: Span = timed("pmd_free", "munmap of 1 GiB with one page");
static PUD_ALLOC_SPAN: Span = timed("pud_alloc", "First touches of a fresh 512 GiB");
static PUD_FREE_SPAN: Span = timed("pud_free", "munmap of 512 GiB with one page");
static PGD_ALLOC_SPAN: Span = timed("pgd_alloc", "fork, in the parent");
static PGD_FREE_SPAN: Span = timed("pgd_free", "exit of a child, until it was waited for");

const fn timed(name: &'static str, help: &'static str) -> Span {
    Span::new(name).with_histogram(GROUPING).help(help)
}

/// The spans of the levels, in their order.
static SPANS: [(&Span, &Span); 4] = [
    (&PAGE_TOUCH, &PAGE_UNMAP),
    (&PTE_ALLOC_SPAN, &PTE_FREE_SPAN),
    (&PMD_ALLOC_SPAN, &PMD_FREE_SPAN),
    (&PUD_ALLOC_SPAN, &PUD_FREE_SPAN),
];

/// All levels and the processes in turn, forwards and backwards, round after round.
pub(super) fn rounds(rounds: usize, cpu: Option<usize>) -> PageTables {
    let readings = Readings::default();
    let mut found = PageTables {
        cpu,
        ..PageTables::default()
    };
    // The processes come after the levels.
    let all = LEVELS.len() + 1;
    let warm_up = std::iter::repeat_n(0..all, WARM_UP_SAMPLES).flatten();
    for at in warm_up.chain(schedule::sequence(all, rounds)) {
        let level = LEVELS.get(at);
        let name = level.map_or(PGD_ALLOC, |level| level.alloc);
        if found.missing.iter().any(|(missing, _)| *missing == name) {
            continue;
        }
        let (taken, met) = watched(cpu, || match level {
            Some(level) => sample(level, SPANS[at], &readings),
            None => processes(&readings),
        });
        match taken {
            Ok(()) => found.met.push((name, met)),
            Err(reason) => found.missing.push((name, reason)),
        }
    }
    PageTables {
        readings: readings.get(),
        ..found
    }
}

/// Takes a sample, and tells what it met. Page faults are what is timed here.
fn watched(
    cpu: Option<usize>,
    take: impl FnOnce() -> Result<(), String>,
) -> (Result<(), String>, Surroundings) {
    let clock = RealClock::new();
    let steal = Steal::begin(cpu.as_slice());
    let mut taken = Ok(());
    let watch = Watch::begin(&clock, cpu);
    let mut thread = watch
        .time(&clock, |_| {
            taken = take();
            1
        })
        .thread;
    let steal_ns = steal.end();
    thread.met.faults = None;
    let met = Surroundings::of(&Sample {
        elapsed_ns: thread.elapsed_ns,
        threads: vec![thread],
        oversubscribed: false,
        shared_cores: Some(false),
        steal_ns,
    });
    (taken, met)
}

/// Touches what was never touched, and gives it back, from the end on.
fn sample(level: &Level, (alloc, free): (&Span, &Span), readings: &Readings) -> Result<(), String> {
    let bytes = (level.events + 1) * level.step;
    let reserved = AddressSpace::reserve(bytes, level.whole);
    let mut space =
        reserved.map_err(|error| format!("no {} MiB of addresses: {error}", bytes >> 20))?;
    // All levels above are there from here on.
    space.touch(0);
    for event in 1..=level.events {
        let running = alloc.start();
        space.touch(event * level.step);
        running.stop();
    }
    for event in (1..=level.events).rev() {
        let running = free.start();
        let result = space.give_back_from(event * level.step);
        running.stop();
        result.map_err(|error| format!("munmap: {error}"))?;
    }
    push(level.alloc, alloc, level.events, readings)?;
    push(level.free, free, level.events, readings)
}

/// Makes and ends processes.
fn processes(readings: &Readings) -> Result<(), String> {
    for _ in 0..FORKS {
        let running = PGD_ALLOC_SPAN.start();
        let child = Child::fork();
        running.stop();
        let child = child.map_err(|error| format!("no process: {error}"))?;
        let running = PGD_FREE_SPAN.start();
        let result = child.wait();
        running.stop();
        result.map_err(|error| error.to_string())?;
    }
    push(PGD_ALLOC, &PGD_ALLOC_SPAN, FORKS, readings)?;
    push(PGD_FREE, &PGD_FREE_SPAN, FORKS, readings)
}

/// Keeps a sample that has all its events.
fn push(name: &str, span: &Span, events: usize, readings: &Readings) -> Result<(), String> {
    let taken = span.take();
    let recorded = taken.events + taken.skipped + taken.invalid;
    if recorded != events as u64 {
        return Err(format!("{name}: {events} events, the span has {recorded}"));
    }
    readings.push((VARIANT, name, PATTERN), taken);
    Ok(())
}
