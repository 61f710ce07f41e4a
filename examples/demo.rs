//! A program that counts with every kind of metric, to look at from outside:
//!
//! ```sh
//! cargo run --example demo
//! cargo run -- show demo --watch     # in another terminal, or with the demo in the background
//! ```
//!
//! `demo` counts until it is killed, as by Ctrl-C. `demo until-closed` counts until standard input is closed
//! or a line comes in; `demo ROUNDS` counts so many rounds in each of two threads, and then waits for that.
//! It says `ready` once there is something to see.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use countersink::{BatchCounter, Counter, Family, Gauge, Histogram, Span, Unit, event_group};

static REQUESTS: Counter = Counter::new("demo_requests").help("Requests that were answered");
static SENT: Counter = Counter::new("demo_sent")
    .unit(Unit::Bytes)
    .help("Bytes of the answers");
static THREADS: Gauge = Gauge::new("demo_threads").help("Threads that answer");
static CACHED: BatchCounter =
    BatchCounter::new("demo_answers_kept").help("Answers in the cache, at most a thousand");
static ANSWER: Span = Span::new("demo_answer").help("From request to answer");
static LOOKUP: Span = Span::new("demo_lookup")
    .with_histogram(5)
    .help("Looking for an answer");
static SIZE: Histogram<5> = Histogram::new("demo_size")
    .with_sum()
    .unit(Unit::Bytes)
    .help("How large answers are");
static METHODS: Family<Counter> =
    Family::new(Counter::new("demo_methods").help("Requests"), ["method"]);

event_group! {
    /// What happens to the cache.
    static CACHE: CacheEvents = "demo_cache" {
        /// Found
        hit,
        /// Not found
        miss,
    }
}

/// Threads that count.
const COUNTING: usize = 2;

/// Set when the program is to end. Nothing is ordered by it.
static STOP: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    let (rounds, ends) = match argument.as_deref().map(|text| (text, text.parse())) {
        None => (None, false),
        Some(("until-closed", _)) => (None, true),
        Some((_, Ok(rounds))) => (Some(rounds), true),
        Some((_, Err(_))) => {
            eprintln!("usage: demo [ROUNDS | until-closed]");
            return ExitCode::from(2);
        }
    };
    THREADS.add(COUNTING as i64);
    let counted = Barrier::new(COUNTING + 1);
    thread::scope(|scope| {
        for _ in 0..COUNTING {
            scope.spawn(|| count(rounds, &counted));
        }
        counted.wait();
        println!("ready");
        // Whoever started this may have gone away.
        let _ = io::stdout().flush();
        if ends {
            let _ = io::stdin().lock().read_line(&mut String::new());
            STOP.store(true, Ordering::Relaxed);
        }
    });
    ExitCode::SUCCESS
}

/// Counts all rounds before the barrier, or one before it and others until the end.
fn count(rounds: Option<u64>, counted: &Barrier) {
    let (get, put) = (METHODS.with(["GET"]), METHODS.with(["PUT"]));
    let mut round = |number: u64| {
        answer(number);
        if number.is_multiple_of(4) {
            put.inc();
        } else {
            get.inc();
        }
    };
    match rounds {
        Some(rounds) => (0..rounds).for_each(&mut round),
        None => round(0),
    }
    counted.wait();
    let mut next = 1;
    while !STOP.load(Ordering::Relaxed) {
        if rounds.is_none() {
            round(next);
            next += 1;
        }
        thread::sleep(Duration::from_millis(1));
    }
    THREADS.dec();
}

/// A request: every fourth one misses the cache, and every second answer has no bytes.
fn answer(number: u64) {
    let running = ANSWER.start();
    let bytes = 100 * (1 + number % 10);
    let looking = LOOKUP.start();
    if number.is_multiple_of(4) {
        CACHE.miss.inc();
        // Asked before it counts: without looking at what every CPU has, unless it is near the limit.
        CACHED.limited_add(1000, 1);
    } else {
        CACHE.hit.inc();
    }
    looking.stop();
    SIZE.record(bytes);
    SENT.add(bytes);
    REQUESTS.inc();
    if number.is_multiple_of(2) {
        running.stop_bytes(bytes);
    }
}
