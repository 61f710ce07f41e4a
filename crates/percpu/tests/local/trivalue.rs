//! Contexts below the third share a word, and still nothing is lost.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};

use countersink_percpu::local::trivalue::Context;
use countersink_percpu::local::{LocalCounter, TriValue};
use libc::{SIGURG, SIGUSR1, SIGUSR2, SIGWINCH, c_int};

use crate::signals::{exclusive, install, raise};
use crate::ways::Entry;

/// Each interrupts the one before.
const SIGNALS: [c_int; 4] = [SIGUSR1, SIGUSR2, SIGURG, SIGWINCH];

static COUNTER: AtomicPtr<TriValue> = AtomicPtr::new(core::ptr::null_mut());
/// How many of the signals the handlers raise before they stop.
static DEPTH: AtomicUsize = AtomicUsize::new(0);

fn add(level: usize) {
    // SAFETY: the test's counter, which lives as long as it raises signals, on this thread.
    let counter = unsafe { &*COUNTER.load(SeqCst) };
    // A digit of its own for each level.
    counter.add(10_i64.pow(level as u32));
}

fn handler(signal: c_int) {
    let level = SIGNALS.iter().position(|other| *other == signal);
    let level = level.unwrap_or(SIGNALS.len()) + 1;
    add(level);
    if level < DEPTH.load(SeqCst) {
        raise(SIGNALS[level]);
    }
    add(level);
}

#[test]
fn handlers_in_handlers_in_handlers() {
    let _exclusive = exclusive();
    let counter = TriValue::default();
    COUNTER.store((&raw const counter).cast_mut(), SeqCst);
    for signal in SIGNALS {
        install(signal, Entry::Context, handler);
    }
    for depth in 0..=SIGNALS.len() {
        DEPTH.store(depth, SeqCst);
        counter.set(0);
        add(0);
        if depth > 0 {
            raise(SIGNALS[0]);
        }
        add(0);
        let expected = (0..=depth).map(|level| 2 * 10_i64.pow(level as u32)).sum();
        assert_eq!(counter.read(), expected, "{depth} handlers deep");
    }
}

#[test]
fn contexts_nest_and_end() {
    let counter = TriValue::default();
    // Twice: whatever was entered has ended.
    for round in 0..2 {
        let mut contexts = Vec::new();
        for _ in 0..6 {
            counter.add(1);
            assert_eq!(counter.add_return(i64::MAX), counter.read());
            assert_eq!(counter.add_return(i64::MIN + 1), counter.read());
            contexts.push(Context::enter());
        }
        drop(contexts);
        assert_eq!(counter.read(), 6 * (round + 1));
    }
    let _nested = [Context::enter(), Context::enter(), Context::enter()];
    counter.set(-1);
    assert_eq!(counter.read(), -1);
}
