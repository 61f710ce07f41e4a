//! Forks of a program whose threads count, register and use a family meanwhile.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, RwLock};

use countersink::{Counter, Family, Gauge, Span};

use crate::common::child::alone;
use crate::common::cpus::{pause, wait_until};
use crate::common::fork::fork;
use crate::common::log::{self, Line, total};
use crate::common::random::Random;
use crate::common::raw::Raw;
use crate::common::read;

const FORKS: u64 = 200;
const THREADS: usize = 3;
const SEED: u64 = 0xf04c_0006;
/// What a child counts.
const ROUNDS: u64 = 100;
const LABELS: [&str; 12] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"];

static COUNT: Counter = Counter::new("forks_count");
static LEVEL: Gauge = Gauge::new("forks_level");
static EVENTS: Span = Span::new("forks_events");
static FAMILY: Family<Counter> = Family::new(Counter::new("forks_family"), ["label"]);
static COMING: Family<Counter> = Family::new(Counter::new("forks_coming"), ["label"]);

/// A family without a gate: a child can find its lock taken by a thread that it does not have.
static UNGUARDED: RwLock<BTreeMap<u64, Arc<u64>>> = RwLock::new(BTreeMap::new());

/// Words of a log.
const COUNTED: usize = 0;
const IN_FAMILY: usize = 1;
const LOCKED: usize = 2;

fn count(log: &Line, random: &mut Random) {
    COUNT.inc();
    LEVEL.add(2);
    EVENTS.start().stop();
    LEVEL.sub(1);
    log.add(COUNTED, 1);
    let label = LABELS[random.below(LABELS.len() as u64) as usize];
    FAMILY.with([label]).inc();
    log.add(IN_FAMILY, 1);
}

/// What a thread does until all forks were made.
fn work(log: &Line, thread: usize, stop: &AtomicBool) {
    const NAMES: [&str; THREADS] = ["forks_own_0", "forks_own_1", "forks_own_2"];
    let mut random = Random(SEED + thread as u64);
    let mut round = 0;
    while !stop.load(Relaxed) {
        count(log, &mut random);
        // Comes and goes; it is not used again if a fork came in between.
        let own = Counter::new(NAMES[thread]);
        own.inc();
        let label = LABELS[thread];
        COMING.with([label]).inc();
        COMING.remove([label]);
        let mut members = UNGUARDED.write().expect("nobody panics");
        members.insert(round % 1000, Arc::new(round));
        round += 1;
        if round.is_multiple_of(100) {
            pause();
        }
    }
}

/// What a child does: the same, with handles that it has and with some of its own.
fn in_child(log: &Line, number: u64) {
    static FIRST: Counter = Counter::new("forks_first_in_child");
    let mut random = Random(SEED ^ number);
    for _ in 0..ROUNDS {
        count(log, &mut random);
    }
    FIRST.inc();
    COMING.with(["child"]).inc();
    COMING.remove(["0"]);
    if UNGUARDED.try_read().is_err() {
        log.add(LOCKED, 1);
    }
}

fn forks() {
    let logs = log::shared(THREADS + FORKS as usize);
    let (of_threads, of_children) = logs.split_at(THREADS);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (thread, log) in of_threads.iter().enumerate() {
            let stop = &stop;
            scope.spawn(move || work(log, thread, stop));
        }
        let mut random = Random(SEED);
        for (number, log) in of_children.iter().enumerate() {
            let until = total(of_threads, COUNTED) + random.below(50);
            wait_until(|| total(of_threads, COUNTED) >= until);
            fork(|| in_child(log, number as u64)).wait_well();
        }
        stop.store(true, Relaxed);
    });
    let counted = total(logs, COUNTED);
    let locked = total(of_children, LOCKED);
    println!(
        "seed {SEED:#x}: {counted} counted, {FORKS} forks, {locked} found the other lock taken"
    );
    assert_eq!(total(of_children, COUNTED), FORKS * ROUNDS);
    let snapshot = read::snapshot();
    assert_eq!(read::counter(&snapshot, "forks_count"), counted);
    assert_eq!(LEVEL.ups_and_downs(), (2 * counted, counted));
    assert_eq!(read::gauge(&snapshot, "forks_level"), counted as i64);
    assert_eq!(read::span(&snapshot, "forks_events").events, counted);
    assert_eq!(read::counter(&snapshot, "forks_first_in_child"), FORKS);
    let members = LABELS.iter().map(|label| {
        let member = read::member(&snapshot, "forks_family", label);
        read::count_of(member)
    });
    assert_eq!(members.sum::<u64>(), total(logs, IN_FAMILY));
    // All children joined the same one.
    let child = read::member(&snapshot, "forks_coming", "child");
    assert_eq!(read::count_of(child), FORKS);
    // At each fork, each thread may have had two that are not used again.
    let raw = Raw::own();
    let most = LABELS.len() as u64 + 6 + 2 * THREADS as u64 * (FORKS + 2);
    println!("{} entries, {} kept", raw.entries_used(), raw.kept());
    assert!(raw.entries_used() <= most);
    assert!(locked > 0, "not a storm");
}

#[test]
fn of_a_program_with_threads_lose_nothing() {
    alone("forks::of_a_program_with_threads_lose_nothing", forks);
}

/// Counters that come after others were dropped, and that stay.
fn others(who: &str) -> Vec<&'static Counter> {
    let names = (0..20).map(|number| &*format!("forks_other_{who}_{number}").leak());
    let others: Vec<_> = names
        .map(|name| &*Box::leak(Box::new(Counter::new(name))))
        .collect();
    others.iter().for_each(|counter| counter.add(7));
    others
}

/// Parent and child have the same words; when one of them drops its handle, the other counts on.
fn dropped_on_one_side() {
    for who in ["child", "parent"] {
        let [words] = log::shared(1) else {
            panic!("one line");
        };
        let inherited = RefCell::new(Some(Counter::new(format!("forks_inherited_{who}").leak())));
        let count = |n| inherited.borrow().as_ref().expect("still there").add(n);
        count(1000);
        let drop_and_reuse = || {
            drop(inherited.take());
            others(who);
            words.set(0, 1);
        };
        let count_after = || {
            wait_until(|| words.get(0) == 1);
            count(5);
        };
        if who == "child" {
            let child = fork(drop_and_reuse);
            count_after();
            child.wait_well();
            assert_eq!(
                inherited.borrow().as_ref().expect("still there").sum(),
                1005
            );
        } else {
            let child = fork(count_after);
            drop_and_reuse();
            child.wait_well();
        }
        let snapshot = read::snapshot();
        assert_eq!(
            read::counter(&snapshot, &format!("forks_inherited_{who}")),
            1005
        );
        for number in 0..20 {
            let name = format!("forks_other_{who}_{number}");
            assert_eq!(read::counter(&snapshot, &name), 7, "{name}");
        }
    }
    // What only one process ever had is used again, also after forks.
    let used = Raw::own().entries_used();
    (0..100).for_each(|_| Counter::new("forks_passing").inc());
    assert!(Raw::own().entries_used() <= used + 1);
}

#[test]
fn leave_the_words_of_inherited_handles_alone() {
    alone(
        "forks::leave_the_words_of_inherited_handles_alone",
        dropped_on_one_side,
    );
}

/// A fork while a thread uses a family for the first time in the process.
fn first_uses() {
    const PROCESSES: u64 = 400;
    COUNT.add(0);
    let mut random = Random(SEED);
    for _ in 0..PROCESSES {
        let spins = random.below(300);
        let process = fork(|| {
            let started = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    started.store(true, Relaxed);
                    FAMILY.with(["0"]).inc();
                });
                while !started.load(Relaxed) {
                    core::hint::spin_loop();
                }
                (0..spins).for_each(|_| core::hint::spin_loop());
                fork(|| FAMILY.with(["1"]).inc()).wait_well();
            });
        });
        process.wait_well();
    }
    let snapshot = read::snapshot();
    for label in ["0", "1"] {
        let member = read::member(&snapshot, "forks_family", label);
        assert_eq!(read::count_of(member), PROCESSES);
    }
}

#[test]
fn while_a_family_is_first_used_do_not_hang() {
    alone(
        "forks::while_a_family_is_first_used_do_not_hang",
        first_uses,
    );
}
