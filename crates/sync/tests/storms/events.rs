//! Events add up when everybody is at rest.

use std::collections::BTreeMap;
use std::time::Duration;

use countersink_sync::RawRwSem;
use countersink_sync::lock_api::RwLock;
use countersink_sync::rwsem::{AddFirst, LoadFirst, OwnershipFirst, TryRead};

use super::{Random, Twins};

const SEED: u64 = 0xe7e0_0005;
const THREADS: u64 = 6;
const OPERATIONS: u64 = 30_000;

macro_rules! class {
    ($name:ident, $static:ident, $class:ident, $group:literal, $form:ty) => {
        mod $name {
            countersink_sync::lock_events! {
                /// Of one form of `try_read`.
                pub(super) $static: $class = $group
            }
        }

        #[test]
        fn $name() {
            add_up::<$form, $name::$class>(|| {
                $name::$static
                    .read()
                    .into_iter()
                    .map(|(event, count)| {
                        (
                            event
                                .strip_prefix(concat!($group, "_"))
                                .expect("the group's name"),
                            count,
                        )
                    })
                    .collect()
            });
        }
    };
}

class!(of_ownership_first, OWN, Own, "events_own", OwnershipFirst);
class!(of_load_first, LOAD, Load, "events_load", LoadFirst);
class!(of_add_first, ADD, Add, "events_add", AddFirst);

/// What threads have seen of themselves.
#[derive(Debug, Default)]
struct Seen {
    try_reads: u64,
    try_reads_failed: u64,
    try_writes: u64,
    try_writes_failed: u64,
    timed_out: [u64; 2],
}

fn add_up<T: TryRead, E: countersink_sync::Events>(read: impl Fn() -> BTreeMap<&'static str, u64>) {
    let lock: RwLock<RawRwSem<T, E>, Twins> = RwLock::new(Twins::default());
    let work = |thread| {
        let (mut random, mut seen) = (Random(SEED + thread), Seen::default());
        for _ in 0..OPERATIONS {
            let soon = Duration::from_micros(random.below(300));
            match random.below(6) {
                0 => {
                    seen.try_reads += 1;
                    seen.try_reads_failed += u64::from(lock.try_read().is_none());
                }
                1 => {
                    seen.try_writes += 1;
                    seen.try_writes_failed += u64::from(lock.try_write().is_none());
                }
                2 => seen.timed_out[0] += u64::from(lock.try_read_for(soon).is_none()),
                3 => seen.timed_out[1] += u64::from(lock.try_write_for(soon).is_none()),
                4 => _ = lock.read().get().expect("equal"),
                _ => {
                    let twins = lock.write();
                    twins.add();
                    // With the lock, so that others sleep.
                    if random.below(64) == 0 {
                        std::thread::yield_now();
                    }
                }
            }
        }
        seen
    };
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    let events = read();
    println!("seed {SEED:#x}: {events:?}");
    let sum = |of: fn(&Seen) -> u64| seen.iter().map(of).sum::<u64>();
    assert_eq!(events["rtrylock"], sum(|seen| seen.try_reads));
    assert_eq!(events["rtrylock_fail"], sum(|seen| seen.try_reads_failed));
    assert_eq!(events["wtrylock"], sum(|seen| seen.try_writes));
    assert_eq!(events["wtrylock_fail"], sum(|seen| seen.try_writes_failed));
    assert_eq!(events["rlock_fail"], sum(|seen| seen.timed_out[0]));
    assert_eq!(events["wlock_fail"], sum(|seen| seen.timed_out[1]));
    // Who got it in the end span, or was handed it.
    assert_eq!(
        events["rlock"],
        events["opt_rlock"] + events["rlock_handoff"]
    );
    assert_eq!(
        events["wlock"],
        events["opt_wlock"] + events["wlock_handoff"]
    );
    let slept = events["sleep_reader"] + events["sleep_writer"];
    let woken = events["wake_reader"] + events["wake_writer"] + events["sleep_timeout"];
    assert_eq!(slept, woken);
    assert!(slept > 0 && events["rtrylock_fail"] > 0 && events["wlock_fail"] > 0);
    assert!(events["handoff"] >= u64::from(events["rlock_handoff"] + events["wlock_handoff"] > 0));
}

/// Who owns a lock is told, also in its `Debug` text.
#[test]
fn owners_are_remembered() {
    use countersink_sync::{NoEvents, OwnerKind, RecordOwner};
    type Remembers = RawRwSem<OwnershipFirst, NoEvents, RecordOwner>;
    let lock: RwLock<Remembers, Twins> = RwLock::new(Twins::default());
    let owner = || {
        // SAFETY: nothing is unlocked.
        #[allow(unsafe_code)]
        unsafe { lock.raw() }.owner().get()
    };
    assert_eq!(owner(), None);
    let writer = lock.write();
    let (kind, thread) = owner().expect("a writer");
    assert_eq!(kind, OwnerKind::Writer);
    #[cfg(target_os = "linux")]
    assert_eq!(
        thread,
        rustix::thread::gettid().as_raw_nonzero().get() as u64
    );
    drop(writer);
    assert_eq!(owner(), None);
    let _reader = lock.read();
    assert_eq!(owner(), Some((OwnerKind::Reader, thread)));
}

/// What `countersink show` shows of this process: the events of each class by its name, and of no other.
#[test]
#[cfg(all(target_os = "linux", not(countersink_portable)))]
fn events_are_seen_from_outside() {
    use countersink::reader::{Region, Value};
    use countersink_sync::lock_api::RwLock;

    mod seen {
        countersink_sync::lock_events! { pub(super) SEEN: Seen = "seen_lock" }
    }
    mod other {
        countersink_sync::lock_events! { pub(super) OTHER: Other = "other_lock" }
    }
    let seen: RwLock<RawRwSem<AddFirst, seen::Seen>, ()> = RwLock::new(());
    let other: RwLock<RawRwSem<AddFirst, other::Other>, ()> = RwLock::new(());
    for _ in 0..3 {
        assert!(seen.try_read().is_some());
        let _held = seen.write();
        assert!(seen.try_write().is_none());
    }
    assert!(other.try_write().is_some());
    assert_eq!(seen::SEEN.wtrylock_fail.sum(), 3);
    assert_eq!(other::OTHER.wtrylock.sum(), 1);
    let regions = Region::of_process(std::process::id()).expect("this process has a region");
    let snapshots: Vec<_> = regions
        .iter()
        .map(|region| region.snapshot().expect("valid"))
        .collect();
    let value = |name: &str| {
        let mut metrics = snapshots.iter().flat_map(|snapshot| &snapshot.metrics);
        metrics
            .find(|metric| metric.name == name)
            .map(|metric| metric.value.clone())
    };
    assert_eq!(value("seen_lock_rtrylock"), Some(Value::Counter(3)));
    assert_eq!(value("seen_lock_wtrylock_fail"), Some(Value::Counter(3)));
    assert_eq!(value("other_lock_wtrylock"), Some(Value::Counter(1)));
    assert_eq!(value("other_lock_rtrylock"), Some(Value::Counter(0)));
}
