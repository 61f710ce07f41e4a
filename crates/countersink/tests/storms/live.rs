//! Reading while others count and take: each value is one that there was between the beginning and the end
//! of the read.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use countersink::clock::{Moment, Source, now, request};
use countersink::reader::Value;
use countersink::{Counter, Gauge, Span};

use crate::common::child::alone;
use crate::common::cpus::{allowed, pause, pin, wait_until};
use crate::common::log::{self, Line, total};
use crate::common::random::Random;
use crate::common::raw::{Entry, Raw};
use crate::common::read;

const THREADS: usize = 3;
const READS: u64 = 5000;
const SEED: u64 = 0x11fe_000a;
/// Each event's time, in nanoseconds.
const TIME: u64 = 999;

static COUNT: Counter = Counter::new("live_count");
static TAKEN: Counter = Counter::new("live_taken");
/// Each thread goes up and down again, so it is from 0 to their number.
static LEVEL: Gauge = Gauge::new("live_level");
static EVENTS: Span = Span::new("live_events");

/// Words of a log.
const COUNTED: usize = 0;
const TAKES: usize = 1;

/// Counts on one CPU after the other.
fn count(log: &Line, stop: &AtomicBool) {
    for cpu in allowed().iter().cycle() {
        if stop.load(Relaxed) {
            return;
        }
        pin(*cpu);
        for _ in 0..10_000 {
            LEVEL.inc();
            for _ in 0..8 {
                LEVEL.dec();
                LEVEL.inc();
            }
            COUNT.inc();
            TAKEN.inc();
            let stopped = now();
            let started = Moment {
                ticks: stopped.ticks - TIME,
                ..stopped
            };
            EVENTS.record(started, stopped);
            log.add(COUNTED, 1);
            LEVEL.dec();
        }
        pause();
    }
}

/// Takes, and notes what it took: what is noted has been taken, and what is not may have been.
fn take(log: &Line, stop: &AtomicBool) {
    for cpu in allowed().iter().cycle() {
        if stop.load(Relaxed) {
            return;
        }
        pin(*cpu);
        for _ in 0..200 {
            log.add(TAKES, TAKEN.take());
            let taken = EVENTS.take();
            assert_eq!(taken.time, taken.events * TIME, "torn");
        }
        pause();
    }
}

/// What was known before or after a read.
struct Known {
    counted: u64,
    taken: u64,
}

fn known(logs: &[Line]) -> Known {
    Known {
        taken: total(logs, TAKES),
        counted: total(logs, COUNTED),
    }
}

/// Makes sure that values are some that there were between two moments.
fn check(before: &Known, after: &Known, count: u64, taken: Option<u64>, level: (i64, i64)) {
    let threads = THREADS as u64;
    let most = after.counted + threads;
    assert!((before.counted..=most).contains(&count), "{count}");
    if let Some(taken) = taken {
        // Lanes before bias would give values below zero, which are very large ones.
        assert!(taken <= most - before.taken, "{taken}");
    }
    assert!(level.0 <= level.1, "{level:?}");
    assert!(level.0 <= THREADS as i64 && level.1 >= 0, "{level:?}");
}

/// The gauge as one must not read it: the ups long before the downs.
fn wrong_level(raw: &Raw, entry: &Entry, logs: &[Line]) -> i64 {
    let ups = raw.sum(entry, 0);
    let until = total(logs, COUNTED) + 100;
    wait_until(|| total(logs, COUNTED) >= until);
    ups.wrapping_sub(raw.sum(entry, 1)) as i64
}

fn reads(logs: &[Line]) {
    let region = read::region_of(std::process::id());
    let raw = Raw::own();
    let entries = raw.entries();
    let level = entries.iter().find(|entry| entry.name == "live_level");
    let level = level.expect("registered");
    let mut random = Random(SEED);
    let (mut wrong, mut tried, mut torn, mut meanwhile) = (0, 0, 0, 0);
    for _ in 0..READS {
        if random.below(10) == 0 {
            tried += 1;
            let value = wrong_level(&raw, level, logs);
            wrong += u64::from(!(0..=THREADS as i64).contains(&value));
        }
        let before = known(logs);
        let (count, taken, bounds) = (COUNT.sum(), TAKEN.sum(), LEVEL.bounds());
        let events = EVENTS.read();
        check(&before, &known(logs), count, Some(taken), bounds);
        assert_eq!(events.time, events.events * TIME, "torn");

        let before = known(logs);
        let snapshot = read::snapshot_of(&region);
        let after = known(logs);
        meanwhile += u64::from(after.counted > before.counted);
        let of_taken = read::metric(&snapshot, "live_taken");
        torn += u64::from(of_taken.torn);
        let taken = (!of_taken.torn).then(|| read::count_of(of_taken));
        let Value::Gauge(gauge) = read::metric(&snapshot, "live_level").value else {
            panic!("a gauge");
        };
        let count = read::counter(&snapshot, "live_count");
        check(&before, &after, count, taken, (gauge.low, gauge.high));
    }
    println!(
        "seed {SEED:#x}: {READS} reads, {meanwhile} while others counted, {torn} torn; {wrong} impossible \
         gauges of {tried} that were read the wrong way"
    );
    assert!(wrong > 0 && meanwhile > 0, "not a storm");
    assert!(torn < READS / 2, "resets are not that frequent");
}

fn storm() {
    allowed();
    request(Source::Monotonic).expect("every machine has it");
    let logs = log::shared(THREADS + 1);
    let (stop, counts) = (AtomicBool::new(false), &logs[..THREADS]);
    COUNT.add(0);
    TAKEN.add(0);
    LEVEL.add(0);
    EVENTS.start().discard();
    std::thread::scope(|scope| {
        for log in counts {
            scope.spawn(|| count(log, &stop));
        }
        scope.spawn(|| take(&logs[THREADS], &stop));
        wait_until(|| counts.iter().all(|log| log.get(COUNTED) > 0));
        // A reader that fails must not leave the others counting for ever.
        let read = std::thread::Builder::new();
        let read = read.spawn_scoped(scope, || reads(logs)).expect("a thread");
        let read = read.join();
        stop.store(true, SeqCst);
        read.expect("right values");
    });
    let counted = total(logs, COUNTED);
    assert_eq!(COUNT.sum(), counted);
    assert_eq!(TAKEN.sum() + total(logs, TAKES), counted);
    assert_eq!(LEVEL.bounds(), (0, 0));
}

#[test]
fn values_are_some_that_there_were() {
    alone("live::values_are_some_that_there_were", storm);
}
