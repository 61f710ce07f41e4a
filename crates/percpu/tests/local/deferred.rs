//! What `deferred` promises besides counting.
#![allow(unsafe_code)]

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use countersink_percpu::local::deferred::{self, masked};
use libc::{SIGKILL, SIGURG, SIGUSR1, SIGUSR2, SIGWINCH, c_int};

use crate::signals::{exclusive, raise};

/// The signals whose handlers ran, in order. Room for a few; the rest is not kept.
static LOG: [AtomicUsize; 16] = [const { AtomicUsize::new(0) }; 16];
static LENGTH: AtomicUsize = AtomicUsize::new(0);

fn log(signal: c_int) {
    LOG[LENGTH.fetch_add(1, SeqCst)].store(signal as usize, SeqCst);
}

fn install(signal: c_int, handler: fn(c_int)) -> io::Result<()> {
    // SAFETY: the handlers here touch atomics only, and end the process where they panic.
    unsafe { deferred::install(signal, handler) }
}

/// What ran since the last call.
fn ran() -> Vec<c_int> {
    let length = LENGTH.swap(0, SeqCst);
    let signals = LOG[..length].iter();
    signals.map(|signal| signal.load(SeqCst) as c_int).collect()
}

#[test]
fn what_is_no_signal_or_cannot_be_handled_is_an_error() {
    for signal in [c_int::MIN, -1, 0, SIGKILL, libc::SIGSTOP, 65, c_int::MAX] {
        let error = install(signal, log).expect_err("not to be handled");
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "signal {signal}");
    }
}

#[test]
fn each_signal_that_was_put_off_runs_its_handler() {
    let _exclusive = exclusive();
    install(SIGUSR1, log).unwrap();
    raise(SIGUSR1);
    assert_eq!(ran(), [SIGUSR1], "nothing to wait for");
    let result = masked(|| {
        (0..5).for_each(|_| raise(SIGUSR1));
        assert_eq!(ran(), [], "put off");
        42
    });
    assert_eq!(result, 42);
    assert_eq!(ran(), [SIGUSR1; 5], "as often as it came");
    masked(|| ());
    assert_eq!(ran(), [], "but not again");
}

#[test]
fn they_run_in_the_order_of_their_numbers() {
    let _exclusive = exclusive();
    let mut signals = [SIGUSR2, SIGWINCH, SIGUSR1];
    for signal in signals {
        install(signal, log).unwrap();
    }
    masked(|| signals.into_iter().for_each(raise));
    signals.sort_unstable();
    assert_eq!(ran(), signals);
}

#[test]
fn only_the_outermost_mask_counts() {
    let _exclusive = exclusive();
    install(SIGUSR1, log).unwrap();
    masked(|| {
        masked(|| raise(SIGUSR1));
        masked(|| ());
        assert_eq!(ran(), [], "still masked");
    });
    assert_eq!(ran(), [SIGUSR1]);
}

#[test]
fn a_mask_in_a_handler_puts_off_others() {
    let _exclusive = exclusive();
    install(SIGUSR2, log).unwrap();
    install(SIGUSR1, |signal| {
        masked(|| {
            raise(SIGUSR2);
            log(signal);
        });
        log(signal);
    })
    .unwrap();
    let order = [SIGUSR1, SIGUSR2, SIGUSR1];
    raise(SIGUSR1);
    assert_eq!(ran(), order);
    masked(|| raise(SIGUSR1));
    assert_eq!(ran(), order, "the same when it was put off itself");
}

#[test]
fn a_later_handler_takes_over() {
    let _exclusive = exclusive();
    install(SIGUSR1, |_| unreachable!("replaced")).unwrap();
    masked(|| {
        raise(SIGUSR1);
        install(SIGUSR1, log).unwrap();
    });
    assert_eq!(ran(), [SIGUSR1]);
}

#[test]
fn a_mask_belongs_to_its_thread() {
    let _exclusive = exclusive();
    install(SIGUSR1, log).unwrap();
    masked(|| {
        std::thread::scope(|scope| scope.spawn(|| raise(SIGUSR1)).join().unwrap());
        assert_eq!(ran(), [SIGUSR1], "another thread is not masked");
    });
    assert_eq!(ran(), []);
}

#[test]
fn the_error_number_is_left_alone() {
    let _exclusive = exclusive();
    // SAFETY: no such descriptor.
    install(SIGUSR1, |_| _ = unsafe { libc::close(-1) }).unwrap();
    let signals = [SIGUSR1; 3];
    masked(|| {
        signals.into_iter().for_each(raise);
        // SAFETY: no such process group; fails with another error than the handler's.
        unsafe { libc::kill(0, -1) };
    });
    let error = io::Error::last_os_error().raw_os_error();
    assert_eq!(error, Some(libc::EINVAL));
}

#[test]
fn a_panic_clears_the_mask() {
    let _exclusive = exclusive();
    install(SIGUSR1, log).unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| {
        masked(|| {
            raise(SIGUSR1);
            // Unlike panic!, this prints nothing.
            std::panic::resume_unwind(Box::new(()));
        });
    }));
    assert!(panic.is_err());
    assert_eq!(ran(), [SIGUSR1], "what was pending ran");
    raise(SIGUSR1);
    assert_eq!(ran(), [SIGUSR1], "nothing is put off any more");
}

/// Counts how deep a handler is in itself, and the deepest.
static WITHIN: AtomicUsize = AtomicUsize::new(0);
static DEEPEST: AtomicUsize = AtomicUsize::new(0);
/// Whether the handler should send its own signal.
static AGAIN: AtomicBool = AtomicBool::new(false);

fn watch(signal: c_int, inner: impl FnOnce()) {
    DEEPEST.fetch_max(WITHIN.fetch_add(1, SeqCst) + 1, SeqCst);
    log(signal);
    inner();
    WITHIN.fetch_sub(1, SeqCst);
}

#[test]
fn a_handler_that_was_put_off_is_not_interrupted_by_its_own_signal() {
    let _exclusive = exclusive();
    AGAIN.store(true, SeqCst);
    install(SIGUSR1, |signal| {
        watch(signal, || {
            if AGAIN.swap(false, SeqCst) {
                raise(signal);
                masked(|| ());
            }
        });
    })
    .unwrap();
    masked(|| raise(SIGUSR1));
    assert_eq!(ran(), [SIGUSR1; 2]);
    assert_eq!(DEEPEST.swap(0, SeqCst), 1);
}

/// A signal is pending, comes once more just when the mask is cleared, and its handler, which then
/// runs at once, finds something else pending: it must not run itself from there.
#[test]
fn a_handler_does_not_run_what_is_pending_of_its_own_signal() {
    let _exclusive = exclusive();
    // The first in order brings the second again before its turn has come.
    let mut signals = [SIGUSR1, SIGUSR2, SIGURG];
    signals.sort_unstable();
    static SIGNALS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
    for (entry, signal) in SIGNALS.iter().zip(signals) {
        entry.store(signal as usize, SeqCst);
    }
    let [first, second, third] = signals;
    install(first, |_| raise(SIGNALS[1].load(SeqCst) as c_int)).unwrap();
    install(second, |signal| {
        watch(signal, || {
            masked(|| raise(SIGNALS[2].load(SeqCst) as c_int))
        });
    })
    .unwrap();
    install(third, log).unwrap();
    masked(|| [first, second].into_iter().for_each(raise));
    assert_eq!(DEEPEST.swap(0, SeqCst), 1, "re-entered");
    let ran = ran();
    let count = |wanted| ran.iter().filter(|signal| **signal == wanted).count();
    assert_eq!([second, third].map(count), [2, 2], "all ran: {ran:?}");
}
