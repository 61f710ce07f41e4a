//! Nobody is in beside a writer, and what was written is seen, on every path.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use countersink_sync::lock_api::{RwLockReadGuard, RwLockWriteGuard};

use super::{Lock, Locked, Random, Twins, with_every_lock};

const SEED: u64 = 0x10c5_0005;
const THREADS: u64 = 8;
const OPERATIONS: u64 = 40_000;

/// What a thread did.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    writes: u64,
    reads: u64,
    /// Attempts that failed or took too long.
    refused: u64,
    torn: u64,
}

impl Done {
    fn and(self, other: Done) -> Done {
        Done {
            writes: self.writes + other.writes,
            reads: self.reads + other.reads,
            refused: self.refused + other.refused,
            torn: self.torn + other.torn,
        }
    }

    fn read(&mut self, twins: &Twins) {
        self.reads += 1;
        self.torn += u64::from(twins.get().is_err());
    }

    fn write(&mut self, twins: &Twins) {
        self.torn += u64::from(twins.get().is_err());
        twins.add();
        self.writes += 1;
    }
}

/// One operation, of every kind that there is.
fn operate<L: Lock>(lock: &Locked<L>, random: &mut Random, done: &mut Done) {
    let soon = Duration::from_micros(random.below(200));
    match random.below(16) {
        0..5 => done.read(&lock.read()),
        5 | 6 => match lock.try_read() {
            Some(twins) => done.read(&twins),
            None => done.refused += 1,
        },
        7 => match lock.try_read_for(soon) {
            Some(twins) => done.read(&twins),
            None => done.refused += 1,
        },
        8 => {
            let mut twins = lock.read();
            done.read(&twins);
            RwLockReadGuard::bump(&mut twins);
            done.read(&twins);
            RwLockReadGuard::unlock_fair(twins);
        }
        9 | 10 => done.write(&lock.write()),
        11 => match lock.try_write() {
            Some(twins) => done.write(&twins),
            None => done.refused += 1,
        },
        12 => match lock.try_write_until(Instant::now() + soon) {
            Some(twins) => done.write(&twins),
            None => done.refused += 1,
        },
        13 => {
            let twins = lock.write();
            done.write(&twins);
            let twins = RwLockWriteGuard::downgrade(twins);
            done.read(&twins);
        }
        14 => {
            let mut twins = lock.write();
            done.write(&twins);
            RwLockWriteGuard::bump(&mut twins);
            done.write(&twins);
            RwLockWriteGuard::unlock_fair(twins);
        }
        _ => {
            let panics = AssertUnwindSafe(|| {
                let twins = lock.write();
                twins.add();
                std::panic::resume_unwind(Box::new(()));
            });
            assert!(catch_unwind(panics).is_err());
            done.writes += 1;
        }
    }
}

fn storm<L: Lock>() {
    storm_with::<L>(|_| {});
}

/// Each thread begins with `prepare`.
fn storm_with<L: Lock>(prepare: impl Fn(u64) + Sync) {
    let lock = Locked::<L>::new(Twins::default());
    let work = |thread| {
        prepare(thread);
        let (mut random, mut done) = (Random(SEED + thread), Done::default());
        for _ in 0..OPERATIONS {
            operate(&lock, &mut random, &mut done);
        }
        done
    };
    let done = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        let done = threads
            .into_iter()
            .map(|thread| thread.join().expect("nobody panics"));
        done.fold(Done::default(), Done::and)
    });
    println!("seed {SEED:#x}: {done:?}");
    assert_eq!(done.torn, 0);
    assert_eq!(lock.read().get(), Ok(done.writes));
    assert!(done.refused > 0 && done.reads > 0);
    assert!(!lock.is_locked() && lock.try_write().is_some());
}

with_every_lock!(storm);

/// Some threads, or all, count on the lane that they share.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(countersink_portable)))]
fn storm_of_threads_that_are_not_registered() {
    use crate::libc_rseq;
    if !libc_rseq::registers() {
        println!("the C library registers nobody here: nothing to take back");
        return;
    }
    for every in [1, 2, 3] {
        storm_with::<countersink_sync::RawPercpuRwSem>(|thread| {
            if thread % every == 0 {
                libc_rseq::unregister_this_thread();
            }
        });
    }
}

/// Guards may leave on other threads than they came.
fn guards_travel<L: Lock>()
where
    L::GuardMarker: Send,
{
    let lock = std::sync::Arc::new(Locked::<L>::new(Twins::default()));
    let (send, receive) = std::sync::mpsc::sync_channel(4);
    std::thread::scope(|scope| {
        let sender = std::sync::Arc::clone(&lock);
        scope.spawn(move || {
            for number in 0..2_000 {
                let sent = if number % 3 == 0 {
                    sender.write_arc().add();
                    send.send(Ok(sender.read_arc()))
                } else {
                    send.send(Err(sender.read_arc()))
                };
                sent.expect("somebody listens");
            }
        });
        scope.spawn(move || {
            for guard in receive {
                let (Ok(twins) | Err(twins)) = guard;
                twins.get().expect("equal");
            }
        });
        for _ in 0..2_000 {
            lock.read().get().expect("equal");
        }
    });
    assert_eq!(lock.read().get(), Ok(667));
    assert!(!lock.is_locked());
}

with_every_lock!(guards_travel);

/// What the lock says of itself while one thread has it.
fn is_told<L: Lock>() {
    let lock = Locked::<L>::new(Twins::default());
    assert!(!lock.is_locked() && !lock.is_locked_exclusive());
    {
        let _first = lock.read();
        let _second = lock.try_read().expect("readers share");
        assert!(lock.is_locked() && !lock.is_locked_exclusive());
        assert!(lock.try_write().is_none());
        assert!(lock.try_write_for(Duration::from_millis(1)).is_none());
        assert!(lock.try_write_until(Instant::now()).is_none());
    }
    {
        let twins = lock.try_write().expect("nobody is there");
        assert!(lock.is_locked() && lock.is_locked_exclusive());
        assert!(lock.try_read().is_none() && lock.try_write().is_none());
        assert!(lock.try_read_for(Duration::from_millis(1)).is_none());
        let _twins = RwLockWriteGuard::downgrade(twins);
        assert!(lock.is_locked() && !lock.is_locked_exclusive());
        assert!(lock.try_read().is_some() && lock.try_write().is_none());
    }
    assert!(!lock.is_locked());
    // As long as there is time.
    assert!(lock.try_write_for(Duration::MAX).is_some());
    assert!(lock.try_read_for(Duration::MAX).is_some());
    assert!(!format!("{lock:?}").is_empty());
}

with_every_lock!(is_told);

/// A reader comes on one CPU and leaves on another, both ways, and a writer comes in after it.
#[test]
#[cfg(target_os = "linux")]
fn a_reader_that_moves_in_between_is_gone() {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let allowed = sched_getaffinity(None).expect("the allowed CPUs");
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|cpu| allowed.is_set(*cpu))
        .collect();
    let go_to = |cpu: usize| {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set).expect("an allowed CPU");
    };
    let lock = Locked::<countersink_sync::RawPercpuRwSem>::new(Twins::default());
    for round in 0..200 {
        go_to(cpus[round % cpus.len()]);
        let twins = lock.read();
        go_to(cpus[(round + 1) % cpus.len()]);
        assert!(lock.try_write().is_none(), "a reader is in");
        drop(twins);
        lock.try_write().expect("the reader is gone").add();
    }
    assert_eq!(lock.read().get(), Ok(200));
}
