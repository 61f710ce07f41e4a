//! Processes that register the same metrics at the same time, some of which are killed while they do.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, SeqCst};

use countersink::{Counter, Home};

use crate::common::child::alone;
use crate::common::cpus::wait_until;
use crate::common::fork::{Child, fork};
use crate::common::log::{self, is_in_bracket, note};
use crate::common::random::Random;
use crate::common::raw::Raw;
use crate::common::read;

const NAMES: usize = 500;
const PROCESSES: usize = 4;
const THREADS: usize = 2;
/// Of the processes of a round.
const KILLED: usize = 2;
const ROUNDS: usize = 12;
const SEED: u64 = 0x4e61_0008;

/// Counters of their own for each thread, with the same names.
fn counters(round: usize) -> Vec<Counter> {
    (0..NAMES)
        .map(|number| Counter::new(format!("registration_{round}_{number}").leak()))
        .collect()
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
        }
    }
}

/// One round; how many ready entries there are beyond one for each name.
fn round(round: usize, random: &mut Random) -> u64 {
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
                            log.register(&counters, &mut Random(seed + thread as u64));
                        });
                    }
                });
            })
        })
        .collect();
    go.store(1, SeqCst);
    for number in 0..KILLED {
        let until = random.below(NAMES as u64);
        let begun = &logs[number * THREADS].begun;
        wait_until(|| begun.load(Acquire) >= until);
        // It may have ended well just before.
        let status = {
            let process = processes.remove(0);
            // SAFETY: our child, which nobody has waited for.
            #[allow(unsafe_code)]
            unsafe {
                libc::kill(process.0, libc::SIGKILL)
            };
            process.wait()
        };
        assert!(status == 0 || status == libc::SIGKILL, "{status}");
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
    check(round, &logs)
}

fn check(round: usize, logs: &[Log]) -> u64 {
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
        assert!(is_in_bracket(sum, logged, (KILLED * THREADS) as u64), "{name} {sum} {logged}");
        unlogged += sum - logged;
        assert_eq!(read::counter(&snapshot, &name), sum, "equal entries are added up");
    }
    assert!(unlogged <= (KILLED * THREADS) as u64);
    entries - NAMES as u64
}

fn storms() {
    let mut random = Random(SEED);
    // Here, so that all share the region.
    Counter::new("registration").inc();
    let duplicates: u64 = (0..ROUNDS).map(|number| round(number, &mut random)).sum();
    let raw = Raw::own();
    let names = (ROUNDS * NAMES) as u64;
    let lost = raw.entries_used() - names - duplicates - 1;
    println!("seed {SEED:#x}: {names} names, {duplicates} ready twice, {lost} entries not ready");
    // A killed thread leaves one entry at most; so does one that was slower than another.
    assert!(duplicates + lost <= (ROUNDS * PROCESSES * THREADS) as u64);
}

#[test]
fn of_the_same_metrics_at_once_loses_nothing() {
    alone("registration::of_the_same_metrics_at_once_loses_nothing", storms);
}
