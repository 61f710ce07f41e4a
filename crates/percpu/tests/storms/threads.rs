//! First uses, and ends of threads.
#![allow(unsafe_code)]

use core::ffi::c_void;
use std::cell::Cell;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicPtr, AtomicU64};
use std::sync::{Barrier, OnceLock};

use countersink_percpu::{Segment, Slot, choice};
use libc::{EPERM, SIGUSR1, c_int};

use crate::common::child::{self, Setting};
use crate::common::signals;
use crate::operations::Add;
use crate::storm::{Plan, exact};

/// Threads that live for a moment.
const SHORT: u64 = 4_000;
/// How many of them at once.
const AT_ONCE: u64 = 16;
/// Processes that are used for the first time.
const FRESH: usize = 5;

const SETTINGS: [Setting; 4] = [
    Setting::AsIs,
    Setting::OwnRegistration,
    Setting::Refused(EPERM),
    Setting::Requested,
];

/// A segment that destructors and handlers find.
fn segment() -> &'static Segment {
    static SEGMENT: OnceLock<Segment> = OnceLock::new();
    SEGMENT.get_or_init(|| Segment::private().expect("memory"))
}

fn slot() -> Slot<'static> {
    segment().slot(0).expect("a word")
}

/// Counts when its thread ends.
struct AtEnd(Cell<bool>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        slot().inc();
    }
}

thread_local! {
    static AT_END: AtEnd = const { AtEnd(Cell::new(false)) };
}

/// How many rounds of destructors a key's value has still to go through.
///
/// POSIX runs a destructor again that sets its key, PTHREAD_DESTRUCTOR_ITERATIONS (4) times at most.
const KEY_ROUNDS: usize = 3;

/// Counts, and asks to be called again.
unsafe extern "C" fn key_destructor(value: *mut c_void) {
    slot().inc();
    let rounds = value as usize - 1;
    if rounds > 0 {
        // SAFETY: the key exists as long as there are threads.
        unsafe { libc::pthread_setspecific(key(), rounds as *const c_void) };
    }
}

/// A key made after the library's own: its destructor runs later, and once more after that.
fn key() -> libc::pthread_key_t {
    static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();
    *KEY.get_or_init(|| {
        choice();
        let mut key = 0;
        // SAFETY: the destructor has the right type, and this program is not unloaded.
        let result = unsafe { libc::pthread_key_create(&mut key, Some(key_destructor)) };
        assert_eq!(result, 0);
        key
    })
}

/// A short life: counts once, and at its end in a thread-local's and in a key's destructor.
fn short_life(early: bool) {
    if early {
        slot().inc();
    }
    AT_END.with(|at_end| at_end.0.set(true));
    // SAFETY: the key exists as long as there are threads.
    let result = unsafe { libc::pthread_setspecific(key(), KEY_ROUNDS as *const c_void) };
    assert_eq!(result, 0);
    if !early {
        slot().inc();
    }
}

/// Thousands of them. In a third the first use is in a destructor.
fn churn() -> u64 {
    let before = slot().sum();
    key();
    for group in 0..SHORT / AT_ONCE {
        let threads: Vec<_> = (0..AT_ONCE)
            .map(|index| match (group + index) % 3 {
                0 => std::thread::spawn(|| short_life(true)),
                1 => std::thread::spawn(|| short_life(false)),
                // One count less before the end: another in its place, from an idle thread-local.
                _ => std::thread::spawn(|| {
                    AT_END.with(|at_end| at_end.0.set(true));
                    // SAFETY: as in short_life().
                    let value = (KEY_ROUNDS + 1) as *const c_void;
                    // SAFETY: the key exists as long as there are threads.
                    assert_eq!(unsafe { libc::pthread_setspecific(key(), value) }, 0);
                }),
            })
            .collect();
        for thread in threads {
            thread.join().expect("it ends well");
        }
    }
    let counted = slot().sum() - before;
    // Each: one by itself (or in a fourth round), one in the thread-local, three in the key's.
    assert_eq!(counted, SHORT * 5);
    counted
}

#[test]
fn thousands_of_short_lives() {
    for setting in SETTINGS {
        child::run_chosen("threads::thousands_of_short_lives", setting, churn);
    }
}

/// Short lives and storms in one process: areas are registered and taken back meanwhile.
#[test]
fn short_lives_in_a_storm() {
    for setting in [Setting::AsIs, Setting::OwnRegistration] {
        child::run_chosen("threads::short_lives_in_a_storm", setting, || {
            let plan = Plan {
                workers_per_cpu: 2,
                operations: 1_000_000,
                signals: 1_000,
                timers: 1_000,
                moves: 200,
                unregistered: 0,
            };
            let segment = Segment::private().expect("memory");
            let counter = Add(segment.slot(0).expect("a word"));
            std::thread::scope(|scope| {
                let storm = scope.spawn(|| exact(&counter, &plan));
                churn() + storm.join().expect("the storm ends well")
            })
        });
    }
}

/// All threads find out at the same moment how this process counts.
#[test]
fn first_use_by_many_threads_at_once() {
    const THREADS: usize = 32;
    const ADDS: u64 = 10_000;
    for setting in SETTINGS
        .into_iter()
        .filter(|setting| *setting != Setting::Requested)
    {
        for _ in 0..FRESH {
            child::run(
                "threads::first_use_by_many_threads_at_once",
                setting,
                || {
                    let barrier = Barrier::new(THREADS);
                    let choices = std::thread::scope(|scope| {
                        let first_use = || {
                            barrier.wait();
                            let chosen = choice();
                            (0..ADDS).for_each(|_| slot().inc());
                            chosen
                        };
                        let threads: Vec<_> =
                            (0..THREADS).map(|_| scope.spawn(first_use)).collect();
                        let choices = threads.into_iter().map(|thread| thread.join());
                        choices
                            .map(|choice| choice.expect("it ends well"))
                            .collect::<Vec<_>>()
                    });
                    let chosen = setting.choose();
                    assert!(
                        choices.iter().all(|choice| *choice == chosen),
                        "{choices:?}"
                    );
                    assert_eq!(slot().sum(), THREADS as u64 * ADDS);
                    slot().sum()
                },
            );
        }
    }
}

/// What a handler made.
static MADE: AtomicPtr<Segment> = AtomicPtr::new(core::ptr::null_mut());
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Everything for the first time: the choice, a segment, the thread's registration, a count.
extern "C" fn first_use(_: c_int) {
    static ROOM: OnceLock<Segment> = OnceLock::new();
    // OnceLock waits for nobody here: this is the only thread that gets there.
    if let Ok(segment) = Segment::private() {
        let segment = ROOM.get_or_init(|| segment);
        if let Some(slot) = segment.slot::<u64>(0) {
            slot.inc();
        }
        MADE.store((&raw const *segment).cast_mut(), SeqCst);
    }
}

extern "C" fn count(_: c_int) {
    slot().inc();
    HANDLED.fetch_add(1, SeqCst);
}

#[test]
fn first_use_in_a_handler() {
    for setting in SETTINGS
        .into_iter()
        .filter(|setting| *setting != Setting::Requested)
    {
        child::run("threads::first_use_in_a_handler", setting, || {
            signals::handle(SIGUSR1, first_use);
            signals::raise(SIGUSR1);
            let made = MADE.load(SeqCst);
            assert!(!made.is_null(), "no segment");
            // SAFETY: stored by the handler, from a static.
            let made = unsafe { &*made };
            setting.choose();
            let made = made.slot::<u64>(0).expect("a word");
            made.inc();
            assert_eq!(made.sum(), 2);
            threads_first_use_in_a_handler()
        });
    }
}

/// Each thread's first use is in a handler, then in the thread.
fn threads_first_use_in_a_handler() -> u64 {
    const THREADS: u64 = 200;
    signals::handle(SIGUSR1, count);
    for _ in 0..THREADS {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                signals::raise(SIGUSR1);
                slot().inc();
            });
        });
    }
    assert_eq!(HANDLED.load(SeqCst), THREADS);
    assert_eq!(slot().sum(), 2 * THREADS);
    slot().sum()
}

/// A thread's end: its last counts are in no lane of a CPU where the library has unregistered it.
#[test]
fn the_last_counts_of_a_thread_are_on_the_shared_lane() {
    use countersink_percpu::Lane;
    let test = "threads::the_last_counts_of_a_thread_are_on_the_shared_lane";
    child::run_chosen(test, Setting::OwnRegistration, || {
        let counted = churn();
        let on_shared_lane = slot().load(Lane::Shared);
        println!("{on_shared_lane:?} of {counted} on the shared lane");
        if cfg!(all(target_arch = "x86_64", not(countersink_portable))) {
            // At least the second and third round of each key; not the thread's own.
            let expected = SHORT * 2..=SHORT * 4;
            assert!(on_shared_lane.is_some_and(|held| expected.contains(&held)));
        }
        counted
    });
}
