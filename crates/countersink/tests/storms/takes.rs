//! Takes from several processes while others count: what was taken and what is left is what was counted.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use countersink::clock::{Moment, Source, request};
use countersink::reader;
use countersink::{Counter, Gauge, Histogram, Span};

use crate::common::child::alone;
use crate::common::cpus::{pause, wait_until};
use crate::common::fork::{Child, fork};
use crate::common::log::{self, Line, total};
use crate::common::random::Random;
use crate::common::raw::Raw;

const THREADS: usize = 4;
const TAKERS: usize = 2;
/// Of each metric, by each taker.
const TAKES: u64 = 500;
const IN_A_ROW: u64 = 3000;
const SEED: u64 = 0x7a4e_0002;
/// Each event's time, in nanoseconds.
const TIME: u64 = 1001;

static ADDS: Counter = Counter::new("takes_adds");
static LEVEL: Gauge = Gauge::new("takes_level");
static EVENTS: Span = Span::new("takes_events");
static TIMES: Span = Span::new("takes_times").with_histogram(1);
static VALUES: Histogram<0> = Histogram::new("takes_values").with_sum();

/// Words of a log: of what was counted, or of what was taken.
const ADDED: usize = 0;
const UP: usize = 1;
const DOWN: usize = 2;
const EVENT: usize = 3;
const TIMED: usize = 4;
const VALUE: usize = 5;
const VALUE_SUM: usize = 6;
const ROUNDS: usize = 7;
const WRONG: usize = 8;
/// Of a taker: what had been counted when its last take began.
const BEFORE: usize = 9;
/// Of a taker: what it added itself.
const OWN: usize = 11;

#[derive(Clone, Copy, Debug)]
struct Shared {
    threads: &'static [Line],
    takers: &'static [Line],
    /// A counter and a pair that are taken as one must not.
    wrong: &'static [AtomicU64],
}

fn shared() -> Shared {
    request(Source::Monotonic).expect("every machine has it");
    // Registered before the fork, so that all are known to have the same words.
    ADDS.add(0);
    Shared {
        threads: log::shared(THREADS),
        takers: log::shared(TAKERS),
        wrong: log::words(1),
    }
}

/// An event of one length, wherever the thread is.
fn event(span: &Span) {
    let stopped = countersink::clock::now();
    let started = Moment {
        ticks: stopped.ticks - TIME,
        ..stopped
    };
    span.record(started, stopped);
}

impl Shared {
    fn count(&self, thread: usize, turn: u64, stop: &AtomicU64) {
        let log = &self.threads[thread];
        while stop.load(Relaxed) == 0 {
            ADDS.add(7);
            log.add(ADDED, 7);
            LEVEL.add(5);
            log.add(UP, 5);
            event(&EVENTS);
            log.add(EVENT, 1);
            LEVEL.sub(3);
            log.add(DOWN, 3);
            event(&TIMES);
            log.add(TIMED, 1);
            let value = log.get(ROUNDS) % 1000;
            VALUES.record(value);
            log.add(VALUE, 1);
            log.add(VALUE_SUM, value);
            self.wrong[0].fetch_add(1, SeqCst);
            log.add(WRONG, 1);
            log.add(ROUNDS, 1);
            if log.get(ROUNDS).is_multiple_of(turn) {
                pause();
            }
        }
    }

    /// Takes everything again and again; every other time, when some more has been counted.
    fn take_all(&self, taker: usize) {
        let log = &self.takers[taker];
        let mut random = Random(SEED + taker as u64);
        for take in 0..TAKES {
            // In a row, so that both takers are at it at the same time, and there is something to take.
            for _ in 0..IN_A_ROW {
                ADDS.inc();
                log.add(OWN, 1);
                log.add(ADDED, ADDS.take());
            }
            let level = LEVEL.set(0);
            log.add(UP, level.max(0).unsigned_abs());
            log.add(DOWN, level.min(0).unsigned_abs());
            log.add(EVENT, checked(&EVENTS.take()));
            log.add(TIMED, checked(&TIMES.take()));
            let values = VALUES.take();
            log.add(VALUE, values.count());
            log.add(VALUE_SUM, values.sum.expect("kept"));
            // What comes between the two is lost.
            let wrong = self.wrong[0].load(SeqCst);
            if take % 2 == 0 {
                let until = total(self.threads, ROUNDS) + random.below(10_000);
                wait_until(|| total(self.threads, ROUNDS) >= until);
            }
            self.wrong[0].store(0, SeqCst);
            log.add(WRONG, wrong);
        }
    }

    /// Counts in threads until all children have ended. After so many rounds, a thread lets others run.
    fn count_meanwhile(&self, turn: u64, children: impl FnOnce()) {
        let stop = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let stop = &stop;
                scope.spawn(move || self.count(thread, turn, stop));
            }
            children();
            stop.store(1, Relaxed);
        });
    }
}

/// The events that were taken; their time leaves with them.
fn checked(taken: &reader::Span) -> u64 {
    assert_eq!(taken.time, taken.events * TIME, "torn: {taken:?}");
    taken.events
}

fn everything() {
    let shared = shared();
    let takers: Vec<Child> = (0..TAKERS)
        .map(|taker| fork(|| shared.take_all(taker)))
        .collect();
    shared.count_meanwhile(2000, || takers.into_iter().for_each(Child::wait_well));

    let by_takers = total(shared.takers, OWN);
    let counted = |word| match word {
        ADDED => total(shared.threads, ADDED) + by_takers,
        word => total(shared.threads, word),
    };
    let taken = |word| total(shared.takers, word);
    let values = VALUES.read();
    let rest = [
        (ADDED, ADDS.sum()),
        (EVENT, checked(&EVENTS.read())),
        (TIMED, checked(&TIMES.read())),
        (VALUE, values.count()),
        (VALUE_SUM, values.sum.expect("kept")),
    ];
    for (word, rest) in rest {
        assert_eq!(taken(word) + rest, counted(word), "word {word}");
        assert!(taken(word) > 0, "word {word}");
    }
    let level = |up: u64, down: u64| up as i64 - down as i64;
    assert_eq!(
        level(taken(UP), taken(DOWN)) + LEVEL.value(),
        level(counted(UP), counted(DOWN))
    );
    let resets = Raw::own().u64(1040);
    assert_eq!(
        resets,
        TAKERS as u64 * TAKES * (IN_A_ROW + 4),
        "resets that were noted"
    );
    let wrong = taken(WRONG) + shared.wrong[0].load(SeqCst);
    println!(
        "seed {SEED:#x}: {resets} takes, {} of {} adds taken; load and store: {wrong} of {}",
        taken(ADDED),
        counted(ADDED),
        counted(WRONG)
    );
    assert_ne!(wrong, counted(WRONG), "not a storm");
}

#[test]
fn what_was_taken_and_what_is_left_is_what_was_counted() {
    alone(
        "takes::what_was_taken_and_what_is_left_is_what_was_counted",
        everything,
    );
}

const KILLS: u64 = 40;

impl Shared {
    /// Takes until it is killed. Notes what it took first, then what there can have been.
    fn take_for_ever(&self, taker: usize) {
        let log = &self.takers[taker];
        loop {
            let before = total(self.threads, ADDED);
            log.add(ADDED, ADDS.take());
            log.set(BEFORE, before);
            let before = total(self.threads, EVENT);
            log.add(EVENT, checked(&EVENTS.take()));
            log.set(BEFORE + 1, before);
            log.add(ROUNDS, 1);
            if log.get(ROUNDS).is_multiple_of(100) {
                pause();
            }
        }
    }

    /// Kills takers; the most that the last take of each can have been: what was counted since the one
    /// before began.
    fn kill_takers(&self) -> [u64; 2] {
        let mut random = Random(SEED);
        let mut most = [0; 2];
        for _ in 0..KILLS {
            let taker = fork(|| self.take_for_ever(0));
            let rounds = || self.takers[0].get(ROUNDS);
            let until = rounds() + 1 + random.below(100);
            wait_until(|| rounds() >= until);
            // Best while it is running, so that not much was counted since its last round.
            let _ = (0..20).any(|_| {
                pause();
                is_changing(rounds)
            });
            taker.kill();
            let now = [
                total(self.threads, ADDED) + 7 * THREADS as u64,
                total(self.threads, EVENT) + THREADS as u64,
            ];
            for at in 0..2 {
                most[at] += now[at] - self.takers[0].get(BEFORE + at);
            }
        }
        most
    }
}

fn is_changing(value: impl Fn() -> u64) -> bool {
    let before = value();
    (0..5000).any(|_| value() != before)
}

fn with_kills() {
    let shared = shared();
    let mut most = [0; 2];
    shared.count_meanwhile(50, || {
        // One that stays.
        let other = fork(|| shared.take_for_ever(1));
        most = shared.kill_takers();
        other.kill();
        let now = [
            total(shared.threads, ADDED) + 7 * THREADS as u64,
            total(shared.threads, EVENT) + THREADS as u64,
        ];
        for at in 0..2 {
            most[at] += now[at] - shared.takers[1].get(BEFORE + at);
        }
    });
    let rest = [ADDS.sum(), checked(&EVENTS.read())];
    for (at, word) in [ADDED, EVENT].into_iter().enumerate() {
        let counted = total(shared.threads, word);
        let there = total(shared.takers, word) + rest[at];
        let lost = counted.checked_sub(there).expect("nothing is taken twice");
        println!(
            "seed {SEED:#x}: of {counted}, {lost} lost in {KILLS} last takes, at most {}",
            most[at]
        );
        assert!(lost <= most[at]);
    }
    // What was not taken by anybody is still exact.
    let values = VALUES.read();
    assert_eq!(values.count(), total(shared.threads, VALUE));
    assert_eq!(values.sum.expect("kept"), total(shared.threads, VALUE_SUM));
    assert_eq!(checked(&TIMES.read()), total(shared.threads, TIMED));
}

#[test]
fn a_killed_taker_loses_its_last_take_at_most() {
    alone(
        "takes::a_killed_taker_loses_its_last_take_at_most",
        with_kills,
    );
}
