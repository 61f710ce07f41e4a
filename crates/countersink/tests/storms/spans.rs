//! What spans record, and what earlier designs got wrong: CPU 0 counted once for each CPU, numbers of 32
//! bits, resets that forgot a field, 0 taken for "nothing yet", bytes averaged over events without bytes.

use std::sync::mpsc;

use countersink::clock::{Moment, Source, now, request, source};
use countersink::reader::{self, Extremes, Per, Value};
use countersink::{Counter, Gauge, Histogram, Span};

use crate::common::child::alone;
use crate::common::cpus::{allowed, pin};
use crate::common::raw::Raw;
use crate::common::read;

/// An event of so many ticks, which ends now.
fn event(span: &Span, ticks: u64) {
    let stopped = now();
    let started = Moment {
        ticks: stopped.ticks.wrapping_sub(ticks),
        ..stopped
    };
    span.record(started, stopped);
}

/// In nanoseconds, so that times are what was recorded.
fn in_nanoseconds() {
    request(Source::Monotonic).expect("every machine has it");
}

/// What the program and what a reader see, which is the same.
fn both(span: &Span, name: &str) -> reader::Span {
    let inside = span.read();
    let snapshot = read::snapshot();
    assert_eq!(&inside, read::span(&snapshot, name));
    inside
}

#[test]
fn nested_and_recursive_spans_are_all_counted() {
    static OUTER: Span = Span::new("spans_outer");
    static INNER: Span = Span::new("spans_inner");
    fn recurse(depth: u32) {
        let _running = OUTER.start();
        if depth > 0 {
            INNER.start().stop();
            recurse(depth - 1);
        }
    }
    alone("spans::nested_and_recursive_spans_are_all_counted", || {
        recurse(10);
        let (outer, inner) = (both(&OUTER, "spans_outer"), both(&INNER, "spans_inner"));
        assert_eq!((outer.events, inner.events), (11, 10));
        let (outer_times, inner_times) = (outer.times.expect("some"), inner.times.expect("some"));
        // The outermost contains all others, so its time is more than a part of theirs.
        assert!(outer_times.max >= outer_times.min);
        assert!(outer.time >= outer_times.max && outer_times.max >= inner_times.max);
        assert!(outer.time > inner.time);
    });
}

#[test]
fn spans_stop_on_other_threads_or_not_at_all() {
    static MOVED: Span = Span::new("spans_moved");
    alone("spans::spans_stop_on_other_threads_or_not_at_all", || {
        const EVENTS: u64 = 1000;
        let (send, receive) = mpsc::channel();
        let stopper = std::thread::spawn(move || {
            for running in receive {
                MOVED.start().discard();
                drop(running);
            }
        });
        for _ in 0..EVENTS {
            send.send(MOVED.start()).expect("a receiver");
            MOVED.start().discard();
        }
        drop(send);
        stopper.join().expect("the other thread");
        let read = both(&MOVED, "spans_moved");
        assert_eq!((read.events, read.skipped, read.invalid), (EVENTS, 0, 0));
        println!("{} of {EVENTS} changed CPU", read.migrated);
    });
}

#[test]
fn bytes_are_those_of_events_with_bytes() {
    static COPY: Span = Span::new("spans_copy");
    alone("spans::bytes_are_those_of_events_with_bytes", || {
        COPY.start().stop();
        let read = both(&COPY, "spans_copy");
        assert_eq!((read.events, read.byte_events, read.bytes), (1, 0, 0));
        assert_eq!(read.byte_extremes, None);
        COPY.start().stop_bytes(0);
        let read = both(&COPY, "spans_copy");
        assert_eq!((read.events, read.byte_events, read.bytes), (2, 1, 0));
        assert_eq!(read.byte_extremes, Some(Extremes { min: 0, max: 0 }));
        COPY.start().stop_bytes(1 << 40);
        COPY.start().stop_bytes(6);
        let read = both(&COPY, "spans_copy");
        assert_eq!((read.events, read.byte_events), (4, 3));
        assert_eq!(read.bytes, (1 << 40) + 6, "bytes beyond 32 bits");
        let all = Extremes {
            min: 0,
            max: 1 << 40,
        };
        assert_eq!(read.byte_extremes, Some(all));
        COPY.take();
        COPY.start().stop_bytes(6);
        let read = both(&COPY, "spans_copy");
        assert_eq!(read.byte_extremes, Some(Extremes { min: 6, max: 6 }));
    });
}

/// Starts on one CPU and stops on another, both ways.
fn move_in_the_middle(span: &Span) -> u64 {
    let [first, second, ..] = *allowed() else {
        println!("only one CPU");
        return 0;
    };
    for (from, to) in [(first, second), (second, first)] {
        pin(from);
        let running = span.start();
        pin(to);
        running.stop();
    }
    2
}

#[test]
fn spans_that_change_cpu_are_counted_as_migrated() {
    static MIGRANT: Span = Span::new("spans_migrant");
    alone(
        "spans::spans_that_change_cpu_are_counted_as_migrated",
        || {
            MIGRANT.start().discard();
            assert_ne!(source(), Source::CyclesOfEachCpu);
            let moves = move_in_the_middle(&MIGRANT);
            let read = both(&MIGRANT, "spans_migrant");
            assert_eq!((read.events, read.migrated), (moves, moves));
            assert_eq!((read.skipped, read.invalid), (0, 0));
        },
    );
}

#[test]
fn spans_that_change_cpu_are_skipped_where_clocks_may_differ() {
    static MIGRANT: Span = Span::new("spans_skipped");
    alone(
        "spans::spans_that_change_cpu_are_skipped_where_clocks_may_differ",
        || {
            if request(Source::CyclesOfEachCpu).is_err() {
                return println!("no cycle counter");
            }
            pin(allowed()[0]);
            MIGRANT.start().stop();
            let moves = move_in_the_middle(&MIGRANT);
            let read = both(&MIGRANT, "spans_skipped");
            assert_eq!((read.events, read.migrated), (1, 0));
            assert_eq!((read.skipped, read.invalid), (moves, 0));
            // The seed's reset left this one alone.
            assert_eq!(MIGRANT.take().skipped, moves);
            assert_eq!(both(&MIGRANT, "spans_skipped"), reader::Span::default());
        },
    );
}

#[test]
fn absurd_times_are_thrown_away_and_counted() {
    static ABSURD: Span = Span::new("spans_absurd");
    alone("spans::absurd_times_are_thrown_away_and_counted", || {
        let (early, late) = (
            now(),
            Moment {
                ticks: now().ticks + 1000,
                ..now()
            },
        );
        ABSURD.record(
            late,
            Moment {
                cpu: late.cpu,
                ..early
            },
        );
        let read = both(&ABSURD, "spans_absurd");
        assert_eq!((read.events, read.invalid, read.time), (0, 1, 0));
        assert_eq!(read.times, None);
    });
}

/// It stops before its metric is registered.
#[test]
fn the_first_event_is_as_good_as_others() {
    static FIRST: Span = Span::new("spans_first");
    alone("spans::the_first_event_is_as_good_as_others", || {
        in_nanoseconds();
        event(&FIRST, 9);
        let read = both(&FIRST, "spans_first");
        assert_eq!((read.events, read.time), (1, 9));
        assert_eq!(read.times, Some(Extremes { min: 9, max: 9 }));
        // The same where the words were another metric's before.
        for time in 1..10 {
            let again = Span::new("spans_again");
            event(&again, time);
            let read = both(&again, "spans_again");
            assert_eq!((read.events, read.time), (1, time));
            let times = Extremes {
                min: time,
                max: time,
            };
            assert_eq!(read.times, Some(times));
        }
        assert_eq!(Raw::own().entries_used(), 2, "the words were used again");
    });
}

#[test]
fn no_time_is_a_time() {
    static INSTANT: Span = Span::new("spans_instant");
    alone("spans::no_time_is_a_time", || {
        in_nanoseconds();
        event(&INSTANT, 0);
        let read = both(&INSTANT, "spans_instant");
        assert_eq!(read.times, Some(Extremes { min: 0, max: 0 }));
        event(&INSTANT, 7);
        let read = both(&INSTANT, "spans_instant");
        assert_eq!(read.times, Some(Extremes { min: 0, max: 7 }));
        assert_eq!((read.events, read.time), (2, 7));
    });
}

/// A word of 32 bits ends at 4.29 seconds, or events.
#[test]
fn nothing_wraps_at_32_bits() {
    static LONG: Span = Span::new("spans_long");
    static BUCKETS: Span = Span::new("spans_buckets").with_histogram(2);
    static MANY: Counter = Counter::new("spans_many");
    static UP: Gauge = Gauge::new("spans_up");
    static LARGE: Histogram = Histogram::new("spans_large").with_sum();
    const MINUTE: u64 = 60_000_000_000;
    alone("spans::nothing_wraps_at_32_bits", || {
        in_nanoseconds();
        for span in [&LONG, &BUCKETS] {
            event(span, MINUTE);
            event(span, 5_000_000_000);
        }
        for (span, name) in [(&LONG, "spans_long"), (&BUCKETS, "spans_buckets")] {
            let read = both(span, name);
            assert_eq!((read.events, read.time), (2, MINUTE + 5_000_000_000));
            let times = Extremes {
                min: 5_000_000_000,
                max: MINUTE,
            };
            assert_eq!(read.times, Some(times));
        }
        MANY.add(u64::from(u32::MAX));
        MANY.inc();
        assert_eq!(MANY.sum(), 1 << 32);
        UP.add(1 << 40);
        UP.sub(1 << 41);
        assert_eq!(UP.value(), -(1 << 40));
        LARGE.record(1 << 50);
        LARGE.record(1 << 50);
        let large = LARGE.read();
        assert_eq!((large.count(), large.sum), (2, Some(1 << 51)));
        let snapshot = read::snapshot();
        assert_eq!(read::counter(&snapshot, "spans_many"), 1 << 32);
        assert_eq!(read::gauge(&snapshot, "spans_up"), -(1 << 40));
        assert_eq!(
            read::metric(&snapshot, "spans_large").value,
            Value::Histogram(large)
        );

        // As if the shared lane had counted as many: 2³³ events that took 2⁴⁰ ns.
        let raw = Raw::own_writable();
        let entries = raw.entries();
        let entry = entries.iter().find(|entry| entry.name == "spans_long");
        let entry = entry.expect("registered");
        raw.put(raw.place(entry, 0, 0), 1 << 33);
        raw.put(raw.place(entry, 1, 0), 1 << 40);
        let read = both(&LONG, "spans_long");
        assert_eq!(read.events, (1 << 33) + 2);
        assert_eq!(read.time, (1 << 40) + MINUTE + 5_000_000_000);
    });
}

#[test]
fn a_take_leaves_nothing() {
    static ALL: Span = Span::new("spans_all").with_histogram(3);
    static PLAIN: Span = Span::new("spans_plain");
    alone("spans::a_take_leaves_nothing", || {
        in_nanoseconds();
        for span in [&ALL, &PLAIN] {
            event(span, 100);
            span.start().stop_bytes(5);
            let (late, early) = (now(), Moment { ticks: 1, ..now() });
            span.record(
                late,
                Moment {
                    cpu: late.cpu,
                    ..early
                },
            );
            move_in_the_middle(span);
        }
        let words = |name: &str| {
            let raw = Raw::own();
            let entries = raw.entries();
            let entry = entries.iter().find(|entry| entry.name == name);
            let entry = entry.expect("registered").clone();
            // Sums only: events and time, bytes, migrated, skipped, invalid.
            [0, 1, 2, 3, 12, 13, 14].map(|word| raw.sum(&entry, word))
        };
        for (span, name) in [(&ALL, "spans_all"), (&PLAIN, "spans_plain")] {
            let taken = span.take();
            assert_eq!((taken.invalid, taken.byte_events, taken.bytes), (1, 1, 5));
            assert_eq!(taken.events, 2 + taken.migrated);
            assert!(taken.times.is_some_and(|times| times.max >= 100));
            let left = both(span, name);
            assert!(left.histogram.is_none_or(|left| left.buckets.is_empty()));
            assert_eq!((left.events, left.time, left.times), (0, 0, None));
            assert_eq!(
                (left.byte_events, left.bytes, left.byte_extremes),
                (0, 0, None)
            );
            assert_eq!((left.skipped, left.invalid, left.migrated), (0, 0, 0));
            assert_eq!(words(name), [0; 7]);
        }
    });
}

/// Threads on one CPU each count different numbers; what each CPU counted, and the total, are told.
#[test]
fn every_cpu_counts_once() {
    static COUNT: Counter = Counter::new("spans_by_cpu");
    static TIMED: Span = Span::new("spans_timed");
    alone("spans::every_cpu_counts_once", || {
        in_nanoseconds();
        COUNT.add(0);
        TIMED.start().discard();
        let cpus = allowed();
        for (number, cpu) in cpus.iter().enumerate() {
            let thread = std::thread::spawn({
                let cpu = *cpu;
                move || {
                    pin(cpu);
                    COUNT.add(100 + number as u64);
                    for _ in 0..=number {
                        event(&TIMED, 10 + number as u64);
                    }
                }
            });
            thread.join().expect("a thread on one CPU");
        }
        let n = cpus.len() as u64;
        let events = n * (n + 1) / 2;
        assert_eq!(COUNT.sum(), 100 * n + n * (n - 1) / 2);
        let read = both(&TIMED, "spans_timed");
        assert_eq!(read.events, events);
        assert_eq!(
            read.times,
            Some(Extremes {
                min: 10,
                max: 9 + n
            })
        );
        let snapshot = read::snapshot();
        let counts: Vec<_> = cpus
            .iter()
            .enumerate()
            .map(|(number, cpu)| (Per::Cpu(*cpu), Value::Counter(100 + number as u64)))
            .collect();
        assert_eq!(read::metric(&snapshot, "spans_by_cpu").lanes, counts);
        let lanes = &read::metric(&snapshot, "spans_timed").lanes;
        assert_eq!(lanes.len(), cpus.len());
        for (number, (per, value)) in lanes.iter().enumerate() {
            let Value::Span(span) = value else {
                panic!("a span's lane");
            };
            let time = 10 + number as u64;
            assert_eq!(*per, Per::Cpu(cpus[number]));
            assert_eq!((span.events, span.time), (time - 9, (time - 9) * time));
            assert_eq!(
                span.times,
                Some(Extremes {
                    min: time,
                    max: time
                })
            );
        }
        // The seed's sum: CPU 0 once, and once more for each CPU.
        let lane = |at: usize| read::metric(&snapshot, "spans_by_cpu").lanes[at].1.clone();
        let Value::Counter(first) = lane(0) else {
            panic!("a counter's lane");
        };
        assert_ne!(first * (n + 1), COUNT.sum(), "the test would not tell");
    });
}
