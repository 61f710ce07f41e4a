//! Metrics that are first used before `main`, in signal handlers, in destructors of thread-locals, and
//! while the process ends.
#![allow(unsafe_code)]

use core::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU64, AtomicUsize};

use countersink::{Counter, Gauge, Histogram, Span};
use libc::c_int;

use crate::common::child::{MARK, alone};
use crate::common::fork::fork;
use crate::common::read;

static EARLY: Counter = Counter::new("early");

/// Runs before `main`, and before the library for Rust has begun, in the process for this test.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    // SAFETY: names that end; the value is looked at while nobody changes the environment.
    let is_ours = unsafe {
        let mark = c"COUNTERSINK_TEST_CHILD";
        let value = libc::getenv(mark.as_ptr());
        assert!(mark.to_bytes() == MARK.as_bytes());
        let test = c"early_and_late::a_counter_counts_before_main";
        !value.is_null() && libc::strcmp(value, test.as_ptr()) == 0
    };
    if is_ours {
        EARLY.add(5);
    }
}

#[test]
fn a_counter_counts_before_main() {
    alone("early_and_late::a_counter_counts_before_main", || {
        assert_eq!(EARLY.sum(), 5);
        assert_eq!(read::counter(&read::snapshot(), "early"), 5);
    });
}

static LATE: Counter = Counter::new("late");
static LATE_SPAN: Span = Span::new("late_span");

/// Counts when its thread ends.
struct AtTheEnd;

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        LATE.inc();
        LATE_SPAN.start().stop();
    }
}

#[test]
fn metrics_count_in_destructors_of_thread_locals() {
    thread_local!(static LAST: AtTheEnd = const { AtTheEnd });
    alone(
        "early_and_late::metrics_count_in_destructors_of_thread_locals",
        || {
            const THREADS: u64 = 50;
            for _ in 0..THREADS / 2 {
                let [one, other] =
                    core::array::from_fn(|_| std::thread::spawn(|| LAST.with(|_| ())));
                one.join().expect("a thread");
                other.join().expect("a thread");
            }
            assert_eq!(LATE.sum(), THREADS);
            assert_eq!(LATE_SPAN.read().events, THREADS);
        },
    );
}

static AT_EXIT: Counter = Counter::new("at_exit");
static FIRST_AT_EXIT: Gauge = Gauge::new("first_at_exit");

#[test]
fn metrics_count_while_the_process_ends() {
    extern "C" fn last() {
        AT_EXIT.add(7);
        FIRST_AT_EXIT.inc();
    }
    alone(
        "early_and_late::metrics_count_while_the_process_ends",
        || {
            AT_EXIT.inc();
            for _ in 0..3 {
                let child = fork(|| {
                    // SAFETY: the handler counts.
                    unsafe {
                        assert_eq!(libc::atexit(last), 0);
                        libc::exit(0);
                    }
                });
                child.wait_well();
            }
            assert_eq!(AT_EXIT.sum(), 1 + 3 * 7);
            let snapshot = read::snapshot();
            assert_eq!(read::counter(&snapshot, "at_exit"), 22);
            assert_eq!(read::gauge(&snapshot, "first_at_exit"), 3);
        },
    );
}

const FRESH: usize = 3000;

/// Metrics that nobody has used, for the program and for the handler that interrupts it.
struct Fresh {
    counters: Vec<Counter>,
    of_handler: Vec<Counter>,
}

static METRICS: OnceLock<Fresh> = OnceLock::new();
static HANDLED: Counter = Counter::new("signal_handled");
static IN_HANDLER: Span = Span::new("signal_span");
static VALUES: Histogram = Histogram::new("signal_values").with_sum();
/// Which counter the program is about to use for the first time.
static PRESENT: AtomicUsize = AtomicUsize::new(0);
static HANDLERS: AtomicU64 = AtomicU64::new(0);

/// Registers a counter that the program registers just now, and one that nobody does, and counts.
extern "C" fn handle(_: c_int) {
    let Some(metrics) = METRICS.get() else {
        return;
    };
    let number = HANDLERS.load(Relaxed);
    metrics.counters[PRESENT.load(Relaxed)].inc();
    metrics.of_handler[number as usize % FRESH].inc();
    HANDLED.inc();
    IN_HANDLER.start().stop();
    VALUES.record(number % 50);
    HANDLERS.store(number + 1, Relaxed);
}

/// Has this thread interrupted again and again.
fn storm() -> libc::timer_t {
    // SAFETY: structures that are zeroed, then filled, and live as long as the calls.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, null_mut()), 0);
        // Nobody has used a metric: the region itself is made in the handler.
        assert_eq!(libc::raise(libc::SIGUSR1), 0);
        let mut event: libc::sigevent = core::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGUSR1;
        event.sigev_notify_thread_id = libc::gettid();
        let mut timer: libc::timer_t = core::mem::zeroed();
        assert_eq!(
            libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer),
            0
        );
        let mut interval: libc::itimerspec = core::mem::zeroed();
        interval.it_interval.tv_nsec = 20_000;
        interval.it_value.tv_nsec = 20_000;
        assert_eq!(libc::timer_settime(timer, 0, &interval, null_mut()), 0);
        timer
    }
}

fn in_signal_handlers() {
    let fresh = |kind: &str| {
        (0..FRESH)
            .map(|number| Counter::new(format!("signal_{kind}_{number}").leak()))
            .collect()
    };
    let metrics = METRICS.get_or_init(|| Fresh {
        counters: fresh("main"),
        of_handler: fresh("handler"),
    });
    let timer = storm();
    let mut rounds = 0;
    while HANDLERS.load(SeqCst) < FRESH as u64 || rounds == 0 {
        for (number, counter) in metrics.counters.iter().enumerate() {
            PRESENT.store(number, SeqCst);
            counter.inc();
            let passing = Counter::new("signal_passing");
            passing.inc();
            HANDLED.inc();
        }
        rounds += 1;
    }
    // SAFETY: our timer.
    unsafe { assert_eq!(libc::timer_delete(timer), 0) };
    let handlers = HANDLERS.load(SeqCst);
    let sum = |counters: &[Counter]| counters.iter().map(Counter::sum).sum::<u64>();
    let counted = rounds * FRESH as u64;
    println!("{rounds} rounds, {handlers} signals");
    assert_eq!(sum(&metrics.counters), counted + handlers);
    assert_eq!(sum(&metrics.of_handler), handlers);
    assert_eq!(HANDLED.sum(), counted + handlers);
    assert_eq!(IN_HANDLER.read().events, handlers);
    let values = VALUES.read();
    assert_eq!(values.count(), handlers);
    assert_eq!(
        values.sum,
        Some((0..handlers).map(|number| number % 50).sum())
    );
    let snapshot = read::snapshot();
    let seen = |prefix: &str| -> u64 {
        let metrics = snapshot.metrics.iter();
        let ours = metrics.filter(|metric| metric.name.starts_with(prefix));
        ours.map(read::count_of).sum()
    };
    assert_eq!(seen("signal_main_"), counted + handlers);
    assert_eq!(seen("signal_handler_"), handlers);
}

#[test]
fn metrics_are_registered_in_signal_handlers() {
    alone(
        "early_and_late::metrics_are_registered_in_signal_handlers",
        in_signal_handlers,
    );
}
