//! Something comes in between at every point inside every section, for every operation.
//!
//! An armed point traps; the handler arms it anew and yields, sleeps, waits, or raises another
//! signal whose handler counts on the same word. All totals are exact. Built with
//! `--cfg countersink_inject` only: `ci/inject`.
#![cfg(countersink_inject)]
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize};
use std::time::Duration;

use countersink_percpu::inject::{POINTS, arm, disarm};
use countersink_percpu::{Lane, Mechanism, Segment, Slot, choice};
use libc::{SIGTRAP, SIGUSR1, c_int};

#[path = "storms/counter.rs"]
mod counter;
#[path = "storms/operations.rs"]
mod operations;

mod common;

use common::child::{self, Setting};
use common::{cpus, signals};
use counter::Counter;

/// Threads for each CPU.
const THREADS_PER_CPU: usize = 2;
/// What each thread counts in one run. At 100 % each operation traps 16 times.
const OPERATIONS: u64 = 250;
/// The same where each trap raises a signal whose handler's operation traps 16 times.
const RAISING_OPERATIONS: u64 = 20;
/// The same where each trap takes a millisecond.
const SLEEPY_OPERATIONS: u64 = 3;
/// Where an operation is repeated until the word is as expected, only every so many traps of a thread
/// raise: a handler that changes the word in each of the 16 attempts would let no loop end. Two
/// operations, one that looks and one that stores, must be possible in between.
const LOOPS_RAISE_EVERY: u64 = 37;
/// Of so many passes, one traps: 25, 50 and 100 %.
const EVERY: [i32; 3] = [4, 2, 1];

/// What a trap's handler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disturbance {
    /// Nothing but the abort and the wait that an armed point is.
    Delay,
    Yield,
    /// Raises SIGUSR1, whose handler counts on the same word.
    Raise,
    /// Sleeps for a millisecond.
    Sleep,
}

impl Disturbance {
    const ALL: [Self; 4] = [Self::Delay, Self::Yield, Self::Raise, Self::Sleep];

    fn operations(self) -> u64 {
        match self {
            Disturbance::Raise => RAISING_OPERATIONS,
            Disturbance::Sleep => SLEEPY_OPERATIONS,
            _ => OPERATIONS,
        }
    }
}

/// What the handlers find; set while a run lasts.
static COUNTER: AtomicPtr<&dyn Counter> = AtomicPtr::new(core::ptr::null_mut());
static POINT: AtomicUsize = AtomicUsize::new(0);
static PASSES: AtomicI32 = AtomicI32::new(0);
static RAISE_EVERY: AtomicU64 = AtomicU64::new(1);
static DISTURBANCE: AtomicUsize = AtomicUsize::new(0);
/// For each point, how often it trapped.
static TRAPS: [AtomicU64; POINTS] = [const { AtomicU64::new(0) }; POINTS];
static BY_HANDLERS: AtomicU64 = AtomicU64::new(0);
static RAISED: AtomicU64 = AtomicU64::new(0);

/// What a handler counts.
const BY_HANDLER: u64 = 1 << 40;

thread_local! {
    /// Whether a trap of this thread is being handled: one inside it only aborts.
    static INSIDE: AtomicBool = const { AtomicBool::new(false) };
    /// How many traps this thread has had.
    static HAD: AtomicU64 = const { AtomicU64::new(0) };
}

extern "C" fn trap(_: c_int) {
    let point = POINT.load(SeqCst);
    TRAPS[point].fetch_add(1, SeqCst);
    // Each trap is for itself: at 100 % the handler's own operation traps too.
    arm(point, PASSES.load(SeqCst));
    if INSIDE.with(|inside| inside.swap(true, SeqCst)) {
        return;
    }
    match Disturbance::ALL[DISTURBANCE.load(SeqCst)] {
        Disturbance::Delay => {}
        Disturbance::Yield => std::thread::yield_now(),
        Disturbance::Raise => {
            let had = HAD.with(|had| had.fetch_add(1, Relaxed));
            if had.is_multiple_of(RAISE_EVERY.load(SeqCst)) {
                signals::raise(SIGUSR1);
            }
        }
        Disturbance::Sleep => std::thread::sleep(Duration::from_millis(1)),
    }
    INSIDE.with(|inside| inside.store(false, SeqCst));
}

extern "C" fn count(_: c_int) {
    // SAFETY: set by run() to a reference that lives until all its threads have ended.
    let counter = unsafe { *COUNTER.load(SeqCst) };
    BY_HANDLERS.fetch_add(counter.count(BY_HANDLER), SeqCst);
    RAISED.fetch_add(1, Relaxed);
}

/// All threads count while one point traps; returns how often it did.
fn run(counter: &dyn Counter, point: usize, every: i32, disturbance: Disturbance) -> u64 {
    let before = counter.total();
    COUNTER.store((&raw const counter).cast_mut().cast(), SeqCst);
    POINT.store(point, SeqCst);
    PASSES.store(every - 1, SeqCst);
    let is_loop = is_loop(counter.name());
    RAISE_EVERY.store(if is_loop { LOOPS_RAISE_EVERY } else { 1 }, SeqCst);
    DISTURBANCE.store(disturbance as usize, SeqCst);
    BY_HANDLERS.store(0, SeqCst);
    let traps = TRAPS[point].load(SeqCst);
    arm(point, every - 1);
    let threads = THREADS_PER_CPU * cpus::allowed().len();
    let counted: u64 = std::thread::scope(|scope| {
        let count = || counter.count_ones(disturbance.operations());
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(count)).collect();
        let counted = threads.into_iter().map(|thread| thread.join());
        counted.map(|counted| counted.expect("it ends well")).sum()
    });
    disarm(point);
    let total = counter.total().wrapping_sub(before);
    let expected = counted.wrapping_add(BY_HANDLERS.load(SeqCst));
    let name = counter.name();
    assert_eq!(
        total, expected,
        "{name} at point {point}, {disturbance:?}, every {every}"
    );
    assert_eq!(counter.violations(), 0);
    TRAPS[point].load(SeqCst) - traps
}

/// The points that an operation passes: those that every section has, and its own.
fn points(name: &str) -> usize {
    match name {
        "Add" | "Inc" | "AddRelease" | "Local" => 4,
        // Its exchange; the additions that follow have fewer.
        "Exchange" => 5,
        "AddReturn" | "CompareExchange" | "AddUnless" | "AddPair" => 6,
        "CompareExchangePair" | "AddWithin" | "AddWithinAtMost" => 7,
        other => panic!("how many points does {other} have?"),
    }
}

/// The shares of passes that trap. Behind its comparison a loop cannot do with 100 %: it would see
/// the CPU's lane, where a mismatch ends a section, and after 16 aborts compare with the shared lane.
fn shares(name: &str, point: usize) -> &'static [i32] {
    match (is_loop(name), point == points(name)) {
        (true, true) => &EVERY[..2],
        _ => &EVERY,
    }
}

/// Whether it repeats an operation until the word is as expected.
fn is_loop(name: &str) -> bool {
    name.starts_with("CompareExchange")
}

/// Every operation, point, share and disturbance; returns how many runs there were.
fn everywhere() -> u64 {
    let _exclusive = signals::exclusive();
    // A trap in a trap's handler would kill, were the signal blocked.
    signals::handle_nested(SIGTRAP, trap);
    signals::handle(SIGUSR1, count);
    let segment = Segment::private().expect("memory");
    let runs = operations::for_each(&segment, |counter| {
        let mut runs = 0;
        for point in 1..=points(counter.name()) {
            for disturbance in Disturbance::ALL {
                let shares = shares(counter.name(), point).iter();
                let traps = shares.map(|every| run(counter, point, *every, disturbance));
                let traps: Vec<_> = traps.collect();
                println!(
                    "{}, point {point}, {disturbance:?}: {traps:?} traps",
                    counter.name()
                );
                let sections = choice().mechanism == Mechanism::Rseq;
                let hit = traps.iter().all(|traps| *traps > 0);
                assert_eq!(hit, sections, "{} at point {point}", counter.name());
                runs += traps.len() as u64;
            }
        }
        runs
    });
    println!("{runs} runs, {} signals raised", RAISED.load(SeqCst));
    runs
}

#[test]
fn every_point_of_every_operation() {
    child::run_chosen("every_point_of_every_operation", Setting::AsIs, everywhere);
}

#[test]
fn every_point_with_own_registration() {
    let test = "every_point_with_own_registration";
    child::run_chosen(test, Setting::OwnRegistration, everywhere);
}

/// Looks at the lane first, and then stores what it makes of that: what comes in between is lost.
struct LoadOutside<'a>(Slot<'a>);

impl Counter for LoadOutside<'_> {
    fn name(&self) -> &'static str {
        "AddReturn"
    }

    fn count(&self, n: u64) -> u64 {
        let held = self.0.load(Lane::Cpu(cpus::current())).unwrap_or(0);
        self.0.exchange(held.wrapping_add(n));
        n
    }

    fn total(&self) -> u64 {
        self.0.sum()
    }
}

#[test]
fn a_load_outside_is_found() {
    child::run_chosen("a_load_outside_is_found", Setting::AsIs, || {
        signals::handle_nested(SIGTRAP, trap);
        signals::handle(SIGUSR1, count);
        let segment = Segment::private().expect("memory");
        let mutant = LoadOutside(segment.slot(0).expect("a word"));
        let run = || run(&mutant, 5, EVERY[0], Disturbance::Raise);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        assert!(result.is_err(), "the total should be wrong");
        RAISED.load(SeqCst)
    });
}
