//! Attempts that end in time, under load, and leave nothing behind.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use super::{Lock, Locked, Random, Twins, with_every_lock};

const SEED: u64 = 0x71e0_0005;
const THREADS: u64 = 4;
const ATTEMPTS: u64 = 300;

/// While a guard is held, all attempts of others end by themselves, not before their time; when it is gone, the lock is as
/// new, though sleepers have left their queue in every order.
fn end_while_the_lock_is_held<L: Lock>() {
    let lock = Locked::<L>::new(Twins::default());
    for is_written in [true, false] {
        let (held, shared) = match is_written {
            true => (Some(lock.write()), None),
            false => (None, Some(lock.read())),
        };
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let lock = &lock;
                scope.spawn(move || {
                    let mut random = Random(SEED + thread);
                    for _ in 0..20 {
                        let time = Duration::from_micros(random.below(3_000));
                        let start = Instant::now();
                        let came_in = if is_written && thread % 2 == 0 {
                            lock.try_read_for(time).is_some()
                        } else {
                            lock.try_write_for(time).is_some()
                        };
                        assert!(!came_in);
                        assert!(start.elapsed() >= time, "too soon");
                    }
                });
            }
        });
        assert!(lock.is_locked());
        drop((held, shared));
        assert!(!lock.is_locked());
        lock.write().add();
    }
    assert_eq!(lock.read().get(), Ok(2));
}

with_every_lock!(end_while_the_lock_is_held);

/// Attempts of all lengths beside others that come and go; whoever waits without an end gets in, whoever else gives up around it.
fn leave_nobody_asleep<L: Lock>() {
    let lock = Locked::<L>::new(Twins::default());
    let stop = AtomicBool::new(false);
    let (mut writes, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        let patient: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (lock, stop) = (&lock, &stop);
                scope.spawn(move || {
                    let mut writes = 0;
                    while !stop.load(SeqCst) {
                        if thread % 2 == 0 {
                            lock.write().add();
                            writes += 1;
                        } else {
                            let twins = lock.read();
                            std::thread::yield_now();
                            twins.get().expect("equal");
                        }
                    }
                    writes
                })
            })
            .collect();
        let hasty: Vec<_> = (0..THREADS)
            .map(|thread| {
                let lock = &lock;
                scope.spawn(move || {
                    let mut random = Random(SEED ^ thread);
                    let (mut writes, mut refused) = (0, 0);
                    for _ in 0..ATTEMPTS {
                        let time = Duration::from_nanos(random.below(2_000_000) * random.below(2));
                        if thread % 2 == 0 {
                            match lock.try_write_for(time) {
                                Some(twins) => {
                                    twins.add();
                                    writes += 1;
                                }
                                None => refused += 1,
                            }
                        } else {
                            match lock.try_read_for(time) {
                                Some(twins) => _ = twins.get().expect("equal"),
                                None => refused += 1,
                            }
                        }
                    }
                    (writes, refused)
                })
            })
            .collect();
        for thread in hasty {
            let (wrote, not) = thread.join().expect("no panic");
            writes += wrote;
            refused += not;
        }
        stop.store(true, SeqCst);
        for thread in patient {
            writes += thread.join().expect("no panic");
        }
    });
    println!("seed {SEED:#x}: {writes} writes, {refused} attempts took too long");
    assert_eq!(lock.read().get(), Ok(writes));
    assert!(!lock.is_locked());
}

with_every_lock!(leave_nobody_asleep);

/// Waits until something is so, letting others run.
fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

countersink_sync::lock_events! {
    /// Of the locks below, whose sleepers are counted.
    WATCHED: Watched = "watched_lock"
}
type WatchedLock = super::RawRwSem<super::AddFirst, Watched>;

/// A writer asks for the lock and gives up, with readers asleep behind it: they come in beside the reader that has it, though that
/// stays.
#[test]
fn a_writer_that_gives_up_lets_readers_in() {
    readers_come_in_beside_a_reader(|lock, came_in| {
        let first = lock.read();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| lock.try_write_for(Duration::from_millis(30)).is_none());
            wait_until(|| WATCHED.handoff.sum() > 0);
            let readers = came_in(scope);
            assert!(writer.join().expect("no panic"), "a reader is in");
            wait_until(readers);
        });
        drop(first);
    });
}

/// A writer that becomes a reader lets sleeping readers in, also those that have asked for the lock.
#[test]
fn a_writer_that_becomes_a_reader_lets_readers_in() {
    readers_come_in_beside_a_reader(|lock, came_in| {
        let writer = lock.write();
        std::thread::scope(|scope| {
            let asked = WATCHED.handoff.sum();
            let readers = came_in(scope);
            wait_until(|| WATCHED.handoff.sum() >= asked + 2);
            let first = countersink_sync::lock_api::RwLockWriteGuard::downgrade(writer);
            wait_until(readers);
            drop(first);
        });
    });
}

type Scope<'scope, 'env> = &'scope std::thread::Scope<'scope, 'env>;

/// Runs a scene, and gives it two readers: started by a call, which tells whether they are in. They never are if they wait for the reader
/// that is in, who waits for them.
fn readers_come_in_beside_a_reader(
    scene: impl for<'a> Fn(
        &'a Locked<WatchedLock>,
        &dyn for<'scope, 'env> Fn(Scope<'scope, 'env>) -> Box<dyn Fn() -> bool + 'a>,
    ),
) {
    // Both scenes count the same events.
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let lock: &'static Locked<WatchedLock> = Box::leak(Box::new(Locked::new(Twins::default())));
    scene(lock, &|scope| {
        static IN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        IN.store(0, SeqCst);
        for _ in 0..2 {
            scope.spawn(move || {
                lock.read().get().expect("equal");
                IN.fetch_add(1, SeqCst);
            });
        }
        Box::new(|| IN.load(SeqCst) == 2)
    });
    assert!(!lock.is_locked());
}
