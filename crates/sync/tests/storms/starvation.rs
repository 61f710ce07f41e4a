//! Nobody starves: a writer gets in among readers that never leave the lock free, and a reader among writers that never do.
//!
//! Counted in turns, not in time: from when the word says that the lock is to be handed over, at most one turn of each other thread
//! passes. Without handing over the same goes on until the test gives up; that mutant is in the unit tests of `rwsem`.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::{Lock, Locked, Twins, with_every_lock};

const READERS: u64 = 3;
const ROUNDS: u64 = 20;

/// Readers that hand the lock to each other: each leaves only when the next has come in, or cannot. So without help it is
/// never free.
fn a_writer_gets_in_among_readers<L: Lock>() {
    let lock = Locked::<L>::new(Twins::default());
    let (turn, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for reader in 0..READERS {
            let (lock, turn, stop) = (&lock, &turn, &stop);
            scope.spawn(move || {
                while !stop.load(SeqCst) {
                    let twins = lock.read();
                    twins.get().expect("equal");
                    // Others read meanwhile, for as long as that is allowed: this one is in until the turn is another's.
                    turn.fetch_add(1, SeqCst);
                    let mine = turn.load(SeqCst);
                    for _ in 0..50 {
                        if turn.load(SeqCst) != mine || stop.load(SeqCst) {
                            break;
                        }
                        std::thread::yield_now();
                    }
                    drop(twins);
                    let _ = reader;
                }
            });
        }
        for _ in 0..ROUNDS {
            lock.write().add();
        }
        stop.store(true, SeqCst);
    });
    println!("{ROUNDS} writes among {} reads", turn.load(SeqCst));
    assert_eq!(lock.read().get(), Ok(ROUNDS));
}

/// Writers that are always there: each comes back at once.
fn a_reader_gets_in_among_writers<L: Lock>() {
    let lock = Locked::<L>::new(Twins::default());
    let stop = AtomicBool::new(false);
    let writes = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            let (lock, stop, writes) = (&lock, &stop, &writes);
            scope.spawn(move || {
                while !stop.load(SeqCst) {
                    lock.write().add();
                    writes.fetch_add(1, SeqCst);
                }
            });
        }
        for _ in 0..ROUNDS {
            lock.read().get().expect("equal");
        }
        stop.store(true, SeqCst);
    });
    assert_eq!(lock.read().get(), Ok(writes.load(SeqCst)));
}

/// Threads that try to read again and again, many for each CPU and without a pause, so that some are always preempted in the
/// middle. They give up after so many attempts, and the writer had better not.
fn a_writer_gets_in_among_attempts<L: Lock>() {
    const POLLERS: u64 = 24;
    // Those that are refused at once take a nanosecond, and in each turn of the scheduler there are tens of millions.
    const ATTEMPTS: u64 = 10_000_000_000;
    const WRITES: u64 = 3;
    let lock = Locked::<L>::new(Twins::default());
    let (stop, attempts) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..POLLERS {
            let (lock, stop, attempts) = (&lock, &stop, &attempts);
            scope.spawn(move || {
                while !stop.load(SeqCst) && attempts.load(SeqCst) < ATTEMPTS {
                    for _ in 0..1_000 {
                        if let Some(twins) = lock.try_read() {
                            twins.get().expect("equal");
                        }
                    }
                    attempts.fetch_add(1_000, SeqCst);
                }
            });
        }
        for _ in 0..WRITES {
            lock.write().add();
        }
        stop.store(true, SeqCst);
    });
    let attempts = attempts.into_inner();
    println!("{WRITES} writes among {attempts} attempts");
    assert!(attempts < ATTEMPTS, "a writer starved");
}

with_every_lock!(
    a_writer_gets_in_among_readers a_reader_gets_in_among_writers a_writer_gets_in_among_attempts
);
