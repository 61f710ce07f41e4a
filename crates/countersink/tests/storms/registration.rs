//! Processes that register the same metrics at the same time, some of which are killed while they do.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, SeqCst};

use countersink::{Counter, Home};

use crate::common::child::alone;
use crate::common::cpus::{pause, wait_until};
use crate::common::fork::{Child, fork};
use crate::common::log::{self, is_in_bracket, note};
use crate::common::random::Random;
use crate::common::raw::Raw;
use crate::common::read;

static FIRST: Counter = Counter::new("registration");

const NAMES: usize = 500;
const PROCESSES: usize = 4;
const THREADS: usize = 2;
/// Of the processes of a round.
const KILLED: usize = 2;
const ROUNDS: usize = 30;
const SEED: u64 = 0x4e61_0008;

/// Counters of their own for each thread, with the same names. They stay: entries that everybody has
/// dropped are gone.
fn counters(round: usize) -> &'static [Counter] {
    let counter = |number| Counter::new(format!("registration_{round}_{number}").leak());
    (0..NAMES).map(counter).collect::<Vec<_>>().leak()
}

/// What a thread has counted on each name; begun says how many it is at.
struct Log {
    begun: &'static AtomicU64,
    counted: &'static [AtomicU64],
}

impl Log {
    /// First uses, one after the other, in an order that is nearly the same for all.
    fn register(&self, counters: &[Counter], random: &mut Random) {
        let mut order: Vec<usize> = (0..NAMES).collect();
        for few in order.chunks_mut(4) {
            let from = random.below(few.len() as u64) as usize;
            few.swap(0, from);
        }
        for number in order {
            note(self.begun, 1);
            counters[number].inc();
            note(&self.counted[number], 1);
            if random.below(100) == 0 {
                pause();
            }
        }
    }
}

/// What came of a round, or of all.
#[derive(Debug, Default)]
struct Outcome {
    /// Processes that were killed before they had registered everything.
    killed: u64,
    /// Operations that they could not log any more.
    unlogged: u64,
    /// Ready entries beyond one for each name.
    duplicates: u64,
}

/// One round of registrations.
fn round(round: usize, random: &mut Random) -> Outcome {
    let go = &log::words(1)[0];
    let logs: Vec<Log> = (0..PROCESSES * THREADS)
        .map(|_| Log {
            begun: &log::words(1)[0],
            counted: log::words(NAMES),
        })
        .collect();
    let mut processes: Vec<Child> = (0..PROCESSES)
        .map(|process| {
            let logs = &logs[process * THREADS..][..THREADS];
            let seed = random.next();
            fork(|| {
                std::thread::scope(|scope| {
                    for (thread, log) in logs.iter().enumerate() {
                        scope.spawn(move || {
                            let counters = counters(round);
                            wait_until(|| go.load(Acquire) == 1);
                            log.register(counters, &mut Random(seed + thread as u64));
                        });
                    }
                });
            })
        })
        .collect();
    go.store(1, SeqCst);
    let mut killed = 0;
    for number in 0..KILLED {
        let until = random.below(NAMES as u64);
        let begun = logs[number * THREADS].begun;
        wait_until(|| begun.load(Acquire) >= until);
        match processes.remove(0).kill_if_alive() {
            libc::SIGKILL => killed += 1,
            status => assert_eq!(status, 0, "it had ended just before"),
        }
    }
    processes.into_iter().for_each(Child::wait_well);
    // Whoever comes later finds one of the entries.
    fork(|| {
        for counter in counters(round) {
            counter.inc();
            assert_eq!(counter.home(), Home::Region);
        }
    })
    .wait_well();
    Outcome {
        killed,
        ..check(round, &logs)
    }
}

fn check(round: usize, logs: &[Log]) -> Outcome {
    let raw = Raw::own();
    let (mut sums, mut entries) = (HashMap::new(), 0);
    let prefix = format!("registration_{round}_");
    for entry in raw.entries().into_iter().filter(|entry| entry.is_ready()) {
        if entry.name.starts_with(&prefix) {
            *sums.entry(entry.name.clone()).or_insert(0) += raw.sum(&entry, 0);
            entries += 1;
        }
    }
    let snapshot = read::snapshot();
    // A killed process has two threads, each of them at one name.
    let mut unlogged = 0;
    for number in 0..NAMES {
        let name = format!("{prefix}{number}");
        let sum = sums[&name];
        let logged = 1 + logs
            .iter()
            .map(|log| log.counted[number].load(Acquire))
            .sum::<u64>();
        assert!(
            is_in_bracket(sum, logged, (KILLED * THREADS) as u64),
            "{name} {sum} {logged}"
        );
        unlogged += sum - logged;
        assert_eq!(
            read::counter(&snapshot, &name),
            sum,
            "equal entries are added up"
        );
    }
    assert!(unlogged <= (KILLED * THREADS) as u64);
    Outcome {
        killed: 0,
        unlogged,
        duplicates: entries - NAMES as u64,
    }
}

fn storms() {
    let mut random = Random(SEED);
    // Here, so that all share the region.
    FIRST.inc();
    let mut all = Outcome::default();
    for number in 0..ROUNDS {
        let outcome = round(number, &mut random);
        all.killed += outcome.killed;
        all.unlogged += outcome.unlogged;
        all.duplicates += outcome.duplicates;
    }
    let duplicates = all.duplicates;
    let raw = Raw::own();
    let names = (ROUNDS * NAMES) as u64;
    let lost = raw.entries_used() - names - duplicates - 1;
    println!("seed {SEED:#x}: {names} names, {all:?}, {lost} entries not ready");
    assert!(all.killed > 0, "not a storm");
    // A killed thread leaves one entry at most; so does one that was slower than another.
    assert!(duplicates + lost <= (ROUNDS * PROCESSES * THREADS) as u64);
}

#[test]
fn of_the_same_metrics_at_once_loses_nothing() {
    alone(
        "registration::of_the_same_metrics_at_once_loses_nothing",
        storms,
    );
}
