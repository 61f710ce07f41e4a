//! Shortest and longest after a take are of events that stopped after it was called.
//!
//! An event's time tells when it stopped: one span's times grow, so that its shortest is the earliest that
//! it still knows; another's shrink, so that its longest is.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};

use countersink::Span;
use countersink::clock::{Moment, Source, now, request, source};
use countersink::reader;

use crate::common::child::alone;
use crate::common::cpus::{pause, wait_until};
use crate::common::random::Random;
use crate::common::read;

const RECORDERS: usize = 3;
const TAKES: u64 = 4000;
const SEED: u64 = 0xe7e3_0003;
/// Longer than the test takes, in ticks of any clock.
const LONG: u64 = 1 << 50;

static GROWING: Span = Span::new("extremes_growing");
static SHRINKING: Span = Span::new("extremes_shrinking");

/// Something that records events, and forgets the earlier ones.
trait Recorder: Sync {
    fn record(&self, started: Moment, stopped: Moment);
    /// How many events were taken.
    fn take(&self) -> u64;
    /// The time that tells of the earliest event, in ticks.
    fn earliest(&self) -> Option<u64>;
}

/// A span, and which of its extremes tells.
struct Real(&'static Span, fn(reader::Extremes) -> u64);

impl Recorder for Real {
    fn record(&self, started: Moment, stopped: Moment) {
        self.0.record(started, stopped);
    }

    fn take(&self) -> u64 {
        self.0.take().events
    }

    fn earliest(&self) -> Option<u64> {
        self.0.read().times.map(self.1)
    }
}

/// The shortest in one word, without generations.
struct Wrong(AtomicU64, AtomicU64);

impl Recorder for Wrong {
    fn record(&self, started: Moment, stopped: Moment) {
        self.1.fetch_add(1, SeqCst);
        let time = stopped.ticks.wrapping_sub(started.ticks);
        self.0.fetch_min(time, SeqCst);
    }

    fn take(&self) -> u64 {
        self.0.store(u64::MAX, SeqCst);
        self.1.swap(0, SeqCst)
    }

    fn earliest(&self) -> Option<u64> {
        Some(self.0.load(SeqCst)).filter(|least| *least != u64::MAX)
    }
}

/// What a storm of takes saw.
#[derive(Debug, Default)]
struct Seen {
    recorded: u64,
    taken: u64,
    looks: u64,
    /// Extremes of events that had stopped before the last take was called.
    stale: u64,
}

/// Records from several threads while this one takes. `time` is an event's time from the ticks since
/// the start; `is_stale` compares what is known with the time of an event at the last take.
fn storm(
    recorder: &dyn Recorder,
    time: fn(u64) -> u64,
    is_stale: impl Fn(u64, u64) -> bool,
    mut look: impl FnMut() -> Option<u64>,
) -> Seen {
    let (stop, recorded) = (AtomicBool::new(false), AtomicU64::new(0));
    let begin = now().ticks;
    let mut seen = Seen::default();
    let mut wait = Random(SEED);
    std::thread::scope(|scope| {
        for thread in 0..RECORDERS as u64 {
            let (stop, recorded) = (&stop, &recorded);
            scope.spawn(move || {
                let mut random = Random(SEED + thread);
                while !stop.load(Relaxed) {
                    let stopped = now();
                    let started = Moment {
                        ticks: stopped.ticks.wrapping_sub(time(stopped.ticks - begin)),
                        ..stopped
                    };
                    // Here, another may take before the event is recorded.
                    if random.below(200) == 0 {
                        pause();
                    }
                    recorder.record(started, stopped);
                    recorded.fetch_add(1, Relaxed);
                }
            });
        }
        for _ in 0..TAKES {
            let called = now().ticks;
            seen.taken += recorder.take();
            if wait.below(4) == 0 {
                let until = recorded.load(Relaxed) + wait.below(100);
                wait_until(|| recorded.load(Relaxed) >= until);
            }
            for _ in 0..3 {
                if let Some(extreme) = look() {
                    seen.looks += 1;
                    seen.stale += u64::from(is_stale(extreme, time(called - begin)));
                }
            }
        }
        stop.store(true, Relaxed);
    });
    seen.taken += recorder.take();
    seen.recorded = recorded.into_inner();
    seen
}

fn check(seen: &Seen) {
    println!("{:?}, seed {SEED:#x}: {seen:?}", source());
    assert_eq!(seen.taken, seen.recorded, "events");
    assert_eq!(seen.stale, 0, "extremes from before the take");
    assert!(seen.looks > 0);
}

/// In the program, and from outside.
fn all() {
    let growing = Real(&GROWING, |times| times.min);
    let shrinking = Real(&SHRINKING, |times| times.max);
    GROWING.record(now(), now());
    GROWING.take();
    let clock = read::snapshot().clock;
    let ns = |ticks| clock.nanoseconds_of(ticks);
    check(&storm(
        &growing,
        |ticks| 1 + ticks,
        |extreme, called| extreme < ns(called),
        || growing.earliest(),
    ));
    check(&storm(
        &shrinking,
        |ticks| LONG - ticks,
        |extreme, called| extreme > ns(called),
        || shrinking.earliest(),
    ));
    let region = read::region_of(std::process::id());
    check(&storm(
        &growing,
        |ticks| 1 + ticks,
        |extreme, called| extreme < ns(called),
        || {
            let snapshot = read::snapshot_of(&region);
            let metric = read::metric(&snapshot, "extremes_growing");
            let times = read::span(&snapshot, "extremes_growing").times;
            times.filter(|_| !metric.torn).map(|times| times.min)
        },
    ));
    let wrong = Wrong(AtomicU64::new(u64::MAX), AtomicU64::new(0));
    let seen = storm(
        &wrong,
        |ticks| 1 + ticks,
        |extreme, called| extreme < called,
        || wrong.earliest(),
    );
    println!("without generations: {seen:?}");
    assert!(seen.stale > 0, "not a storm");
}

#[test]
fn show_only_what_stopped_after_a_take() {
    alone("extremes::show_only_what_stopped_after_a_take", all);
}

#[test]
fn show_only_what_stopped_after_a_take_by_the_monotonic_clock() {
    alone(
        "extremes::show_only_what_stopped_after_a_take_by_the_monotonic_clock",
        || {
            request(Source::Monotonic).expect("every machine has it");
            all();
        },
    );
}

static BYTES: Span = Span::new("extremes_bytes");

/// In each epoch, every event has as many bytes as the epoch's number, once all threads know it.
fn bytes() {
    const EPOCHS: u64 = 300;
    let (stop, epoch) = (AtomicBool::new(false), AtomicU64::new(1));
    let known = [const { AtomicU64::new(0) }; RECORDERS];
    let (mut counted, mut taken) = (0, 0);
    std::thread::scope(|scope| {
        let recorders: Vec<_> = known
            .iter()
            .map(|known| {
                let (stop, epoch) = (&stop, &epoch);
                scope.spawn(move || {
                    let mut sum = 0;
                    while !stop.load(Relaxed) {
                        let bytes = epoch.load(SeqCst);
                        known.store(bytes, SeqCst);
                        for _ in 0..20 {
                            BYTES.start().stop_bytes(bytes);
                            sum += bytes;
                        }
                        pause();
                    }
                    sum
                })
            })
            .collect();
        for number in 2..EPOCHS {
            epoch.store(number, SeqCst);
            wait_until(|| known.iter().all(|known| known.load(SeqCst) == number));
            let before = BYTES.take();
            taken += before.bytes;
            wait_until(|| BYTES.read().byte_extremes.is_some());
            let after = BYTES.read();
            let extremes = after.byte_extremes.expect("some, as before");
            assert_eq!((extremes.min, extremes.max), (number, number));
            assert_eq!(after.bytes % number, 0, "count and bytes of one epoch");
        }
        stop.store(true, Relaxed);
        for recorder in recorders {
            counted += recorder.join().expect("recorded");
        }
    });
    assert_eq!(taken + BYTES.take().bytes, counted);
    println!("{EPOCHS} epochs, {counted} bytes");
}

#[test]
fn of_bytes_are_of_events_after_the_take() {
    alone("extremes::of_bytes_are_of_events_after_the_take", bytes);
}
