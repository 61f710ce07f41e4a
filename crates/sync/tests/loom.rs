//! `RwSem`'s count and its wake-ups under loom: every order of every access, with weak memory, up to a number of preemptions.
//!
//! `ci/loom` runs it. There is no spinning and no time here: whoever does not get the lock sleeps at once, and asks for a handoff
//! when it has to sleep again, so the queue and the handoff are what is explored. A wake-up that is lost shows as a deadlock.
#![cfg(loom)]
#![allow(unsafe_code)]

use countersink_sync::RawRwSem;
use countersink_sync::lock_api::{RawRwLock, RawRwLockDowngrade, RawRwLockFair};
use countersink_sync::rwsem::{AddFirst, LoadFirst, OwnershipFirst, TryRead, mutants};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// A lock and what it guards, which loom watches: an access beside a writer's is an error.
struct Guarded<T: TryRead> {
    lock: RawRwSem<T>,
    value: UnsafeCell<u64>,
}

// SAFETY: what is to be shown, by loom.
unsafe impl<T: TryRead> Sync for Guarded<T> {}
// SAFETY: as above.
unsafe impl<T: TryRead> Send for Guarded<T> {}

impl<T: TryRead> Guarded<T> {
    fn new() -> Arc<Self> {
        Arc::new(Guarded {
            lock: RawRwSem::new(),
            value: UnsafeCell::new(0),
        })
    }

    fn get(&self) -> u64 {
        // SAFETY: the caller has the lock; loom says whether that is enough.
        self.value.with(|value| unsafe { *value })
    }

    fn add(&self) {
        // SAFETY: as above.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }

    fn read(&self) -> u64 {
        self.lock.lock_shared();
        let value = self.get();
        // SAFETY: locked above.
        unsafe { self.lock.unlock_shared() };
        value
    }

    fn try_read(&self) {
        if self.lock.try_lock_shared() {
            self.get();
            // SAFETY: locked above.
            unsafe { self.lock.unlock_shared() };
        }
    }

    fn write(&self) {
        self.lock.lock_exclusive();
        self.add();
        // SAFETY: locked above.
        unsafe { self.lock.unlock_exclusive() };
    }

    fn try_write(&self) -> u64 {
        let is_in = self.lock.try_lock_exclusive();
        if is_in {
            self.add();
            // SAFETY: locked above.
            unsafe { self.lock.unlock_exclusive() };
        }
        u64::from(is_in)
    }

    fn write_fairly(&self) {
        self.lock.lock_exclusive();
        self.add();
        // SAFETY: locked above.
        unsafe { self.lock.unlock_exclusive_fair() };
    }

    fn read_fairly(&self) {
        self.lock.lock_shared();
        self.get();
        // SAFETY: locked above.
        unsafe { self.lock.unlock_shared_fair() };
    }

    fn write_and_downgrade(&self) {
        self.lock.lock_exclusive();
        self.add();
        // SAFETY: locked above.
        unsafe { self.lock.downgrade() };
        self.get();
        // SAFETY: a reader by now.
        unsafe { self.lock.unlock_shared() };
    }
}

type Act<T> = fn(&Guarded<T>);

/// Explores threads that do so, the last in the main thread; so many writes come of it.
fn explore<T: TryRead>(preemptions: usize, acts: &[Act<T>], writes: u64) {
    let mut builder = loom::model::Builder::new();
    let count = acts.len();
    builder.preemption_bound = Some(preemptions);
    let acts = acts.to_vec();
    let orders = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = std::sync::Arc::clone(&orders);
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let guarded = Guarded::<T>::new();
        let (last, first) = acts.split_last().expect("somebody");
        let threads: Vec<_> = first
            .iter()
            .map(|act| {
                let (guarded, act) = (Arc::clone(&guarded), *act);
                thread::spawn(move || act(&guarded))
            })
            .collect();
        last(&guarded);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(guarded.read(), writes);
        assert!(!guarded.lock.is_locked());
        assert_eq!(guarded.try_write(), 1, "something is left in the word");
    });
    println!("{orders:?} orders of {count} threads, {preemptions} preemptions");
}

fn read<T: TryRead>(guarded: &Guarded<T>) {
    guarded.read();
}

#[test]
fn two_writers() {
    explore::<AddFirst>(8, &[Guarded::write, Guarded::write], 2);
}

#[test]
fn a_reader_and_a_writer() {
    explore::<AddFirst>(8, &[read, Guarded::write], 1);
}

#[test]
fn two_readers_and_a_writer() {
    explore::<AddFirst>(4, &[read, read, Guarded::write], 1);
}

#[test]
fn a_reader_and_two_writers() {
    explore::<AddFirst>(4, &[read, Guarded::write, Guarded::write], 2);
}

#[test]
fn three_writers() {
    explore::<AddFirst>(4, &[Guarded::write, Guarded::write, Guarded::write], 3);
}

#[test]
fn a_writer_that_becomes_a_reader() {
    explore::<AddFirst>(4, &[Guarded::write_and_downgrade, read, Guarded::write], 2);
}

#[test]
fn fair_ones() {
    explore::<AddFirst>(
        3,
        &[Guarded::write_fairly, Guarded::read_fairly, Guarded::write],
        2,
    );
}

fn attempts<T: TryRead>() {
    explore::<T>(8, &[Guarded::try_read, Guarded::write], 1);
    explore::<T>(4, &[Guarded::try_read, read, Guarded::write], 1);
}

#[test]
fn attempts_that_add_first() {
    attempts::<AddFirst>();
}

#[test]
fn attempts_that_load_first() {
    attempts::<LoadFirst>();
}

#[test]
fn attempts_that_try_for_ownership_first() {
    attempts::<OwnershipFirst>();
}

/// Two readers that waited for a writer, each of which stays until the other has come in: only if both are woken can they leave.
fn two_readers_meet() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let guarded = Guarded::<AddFirst>::new();
        let met = Arc::new(loom::sync::atomic::AtomicUsize::new(0));
        guarded.lock.lock_exclusive();
        let threads = [(); 2].map(|()| {
            let (guarded, met) = (Arc::clone(&guarded), Arc::clone(&met));
            thread::spawn(move || {
                guarded.lock.lock_shared();
                met.fetch_add(1, loom::sync::atomic::Ordering::SeqCst);
                while met.load(loom::sync::atomic::Ordering::SeqCst) < 2 {
                    thread::yield_now();
                }
                // SAFETY: locked above.
                unsafe { guarded.lock.unlock_shared() };
            })
        });
        // SAFETY: locked above.
        unsafe { guarded.lock.unlock_exclusive() };
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(guarded.try_write(), 1);
    });
}

#[test]
fn readers_that_wait_are_woken_together() {
    two_readers_meet();
}

/// A mutant must fail: in a process of its own, as the fault is everybody's, and as loom ends a process that panics while it
/// unwinds. What it says then.
fn fails(test: &str, mutant: u32, explore: fn()) -> Option<String> {
    const MARK: &str = "COUNTERSINK_TEST_CHILD";
    if std::env::var_os(MARK).is_some() {
        mutants::set(mutant);
        explore();
        return None;
    }
    let mut child = std::process::Command::new(std::env::current_exe().expect("a path"));
    child.args(["--exact", test, "--nocapture"]);
    let output = child.env(MARK, "1").output().expect("it starts");
    assert!(!output.status.success(), "the mutant was not found");
    Some(String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_lock_that_wakes_nobody_is_found() {
    let explore = || explore::<AddFirst>(4, &[Guarded::write, Guarded::write], 2);
    let test = "a_lock_that_wakes_nobody_is_found";
    if let Some(text) = fails(test, mutants::NO_WAKE, explore) {
        assert!(text.contains("deadlock"), "{text}");
    }
}

#[test]
fn a_lock_that_wakes_one_reader_of_two_is_found() {
    let test = "a_lock_that_wakes_one_reader_of_two_is_found";
    // The one waits for the other for ever.
    if let Some(text) = fails(test, mutants::ONE_READER, two_readers_meet) {
        assert!(
            text.contains("exceeded maximum number of branches") || text.contains("deadlock"),
            "{text}"
        );
    }
}
