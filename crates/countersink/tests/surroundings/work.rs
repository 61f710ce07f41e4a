//! Work that is counted: the same in every surrounding, with totals that are known.

use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;

use countersink::reader::Extremes;
use countersink::{Counter, Gauge, Histogram, Home, Span, region};

use crate::child::tell;

pub(crate) static COUNTER: Counter = Counter::new("odd_counter").help("In odd surroundings");
pub(crate) static GAUGE: Gauge = Gauge::new("odd_gauge");
pub(crate) static SPAN: Span = Span::new("odd_span");
pub(crate) static HISTOGRAM: Histogram = Histogram::new("odd_histogram").with_sum();

const THREADS: usize = 4;
const ROUNDS: u64 = 5_000;

/// What [`COUNTER`] holds when all have worked.
pub(crate) const TOTAL: u64 = THREADS as u64 * ROUNDS * 3;

/// One thread's part.
pub(crate) fn count() {
    for round in 0..ROUNDS {
        COUNTER.inc();
        COUNTER.add(2);
        GAUGE.inc();
        if round % 2 == 0 {
            GAUGE.dec();
        }
        SPAN.start().stop_bytes(1 + round % 100);
        HISTOGRAM.record(round);
    }
}

/// Threads that are there, and wait: surroundings may be such that none can be started later.
pub(crate) struct Crew {
    barrier: Arc<Barrier>,
    threads: Vec<JoinHandle<()>>,
}

impl Crew {
    pub(crate) fn hire() -> Self {
        let barrier = Arc::new(Barrier::new(THREADS));
        let thread = |_| {
            let barrier = Arc::clone(&barrier);
            std::thread::spawn(move || {
                barrier.wait();
                barrier.wait();
                count();
            })
        };
        let threads = (1..THREADS).map(thread).collect();
        barrier.wait();
        Crew { barrier, threads }
    }

    /// All count at once, this thread too; the first use is among it.
    pub(crate) fn work(self) {
        self.barrier.wait();
        count();
        for thread in self.threads {
            thread.join().expect("counting does not panic");
        }
    }
}

/// Threads count, and the totals are exact.
pub(crate) fn count_and_check() {
    Crew::hire().work();
    check();
}

/// Whether all totals are those of one crew that has worked; tells where they are.
pub(crate) fn check() {
    tell_place();
    check_times(1);
}

/// The same when so many crews have worked.
pub(crate) fn check_times(crews: u64) {
    let rounds = crews * THREADS as u64 * ROUNDS;
    tell("sum", COUNTER.sum());
    assert_eq!(COUNTER.sum(), 3 * rounds);
    assert_eq!(GAUGE.value(), rounds as i64 / 2);
    assert_eq!(GAUGE.ups_and_downs(), (rounds, rounds / 2));
    let span = SPAN.read();
    assert_eq!(
        (span.events, span.byte_events),
        (rounds, rounds),
        "{span:?}"
    );
    assert_eq!(span.bytes, crews * THREADS as u64 * ROUNDS / 100 * 5050);
    assert_eq!(span.byte_extremes, Some(Extremes { min: 1, max: 100 }));
    assert_eq!((span.skipped, span.invalid), (0, 0), "{span:?}");
    let values = HISTOGRAM.read();
    assert_eq!(values.count(), rounds);
    assert_eq!(
        values.sum,
        Some(crews * THREADS as u64 * (ROUNDS * (ROUNDS - 1) / 2))
    );
}

/// Tells the region's place and why, and the metrics' homes, which are all alike.
pub(crate) fn tell_place() {
    let status = region::status();
    tell("place", status.place);
    tell("hindrance", &status.hindrance);
    tell("metrics", status.metrics);
    tell("segments", status.segments);
    let homes = [COUNTER.home(), GAUGE.home(), SPAN.home(), HISTOGRAM.home()];
    assert!(homes.iter().all(|home| *home == homes[0]), "{homes:?}");
    match homes[0] {
        Home::Region => tell("home", "region"),
        Home::Private(why) => tell("home", why),
        home => panic!("{home:?}"),
    }
}
