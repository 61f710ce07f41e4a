//! Threads that add while they are moved, interrupted and watched.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::Barrier;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};

use libc::{SIGUSR2, c_int};
use rustix::thread::{CpuSet, Pid, sched_setaffinity};

use crate::common::cpus::{allowed, pause};
use crate::common::log::{self, Line};
use crate::common::random::Random;
use crate::signals;
use crate::timer::Timer;
use crate::truth::{Counts, additions, exact, logged};

/// What a storm is. It ends when all of the least numbers have been reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Amounts are chosen by it.
    pub(crate) batch: u32,
    /// Whether everybody only goes up.
    pub(crate) up_only: bool,
    pub(crate) additions: u64,
    /// Handlers that ran.
    pub(crate) handlers: u64,
    /// How often a thread was moved to a CPU.
    pub(crate) moves: u64,
    /// Of the threads, so many first take back their registration, and count on the shared lane.
    pub(crate) unregistered: usize,
}

impl Plan {
    pub(crate) const USUAL: Plan = Plan {
        batch: 32,
        up_only: false,
        additions: 500_000,
        handlers: 2_000,
        moves: 500,
        unregistered: 0,
    };
}

const SEED: u64 = 0xba7c_0004;
/// How often something wrong is looked for that depends on who is preempted where.
pub(crate) const TRIES: u32 = 50;
/// Threads for each CPU.
const THREADS: usize = 3;
const PERIOD_NS: std::ffi::c_long = 100_000;
/// How much those who add stand back behind those who watch and disturb.
const NICE: c_int = 10;

/// How many add: each thread, and its handlers.
pub(crate) fn adders() -> usize {
    2 * THREADS * allowed().len()
}

/// What a handler adds to, and who it is.
#[derive(Clone, Copy)]
struct Handler {
    counts: &'static dyn Counts,
    line: &'static Line,
    adder: usize,
    plan: Plan,
}

thread_local! {
    static HANDLER: Cell<Option<Handler>> = const { Cell::new(None) };
}
static HANDLERS: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: c_int) {
    let Some(handler) = HANDLER.get() else { return };
    let run = HANDLERS.fetch_add(1, SeqCst);
    let sizes = [1, 2, i64::from(handler.plan.batch)];
    let n = sizes[run as usize % 3]
        * if handler.plan.up_only || run.is_multiple_of(2) {
            1
        } else {
            -1
        };
    logged(handler.line, n, || {
        handler.counts.add(handler.adder, n);
        true
    });
}

/// Amounts of all sizes, in phases of one direction each, so that lanes are as far from what they have published as they
/// can be.
pub(crate) fn amount(random: &mut Random, round: u64, plan: &Plan) -> i64 {
    let batch = u64::from(plan.batch);
    let size = match random.below(16) {
        0 => batch,
        1 => batch / 2 + 1,
        2 => 3 * batch + random.below(5),
        3 => 1 + random.below(batch),
        _ => 1 + random.below(3),
    };
    let down = (round / 5_000) % 3 == 2 || random.below(8) == 0;
    if down && !plan.up_only {
        -(size as i64)
    } else {
        size as i64
    }
}

/// What threads of a storm have in common.
struct Common {
    counts: &'static dyn Counts,
    lines: &'static [Line],
    plan: Plan,
    ids: Vec<AtomicI32>,
    stop: AtomicBool,
    /// Passed when all are there, and when nobody disturbs them any more.
    barrier: Barrier,
}

impl Common {
    fn work(&self, thread: usize) {
        if thread < self.plan.unregistered {
            unregister();
        }
        // SAFETY: no preconditions; 0 is this thread. Where it fails, storms take longer.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        self.ids[thread].store(id, SeqCst);
        let (adder, of_handler) = (2 * thread, 2 * thread + 1);
        HANDLER.set(Some(Handler {
            counts: self.counts,
            line: &self.lines[of_handler],
            adder: of_handler,
            plan: self.plan,
        }));
        self.barrier.wait();
        let timer = Timer::start(SIGUSR2, PERIOD_NS);
        let mut random = Random(SEED + thread as u64);
        let mut round = 0;
        while !self.stop.load(Relaxed) {
            let n = amount(&mut random, round, &self.plan);
            round += 1;
            logged(&self.lines[adder], n, || {
                self.counts.add(adder, n);
                true
            });
        }
        drop(timer);
        self.barrier.wait();
    }

    /// Moves threads until the plan is fulfilled.
    fn disturb(&self) {
        let mut random = Random(SEED);
        let mut moves = 0;
        while additions(self.lines) < self.plan.additions
            || HANDLERS.load(SeqCst) < self.plan.handlers
            || moves < self.plan.moves
        {
            let id = &self.ids[random.below(self.ids.len() as u64) as usize];
            let cpu = allowed()[random.below(allowed().len() as u64) as usize];
            let mut set = CpuSet::new();
            set.set(cpu as usize);
            sched_setaffinity(Pid::from_raw(id.load(SeqCst)), &set).expect("an allowed CPU");
            moves += 1;
            pause();
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(countersink_portable)))]
fn unregister() {
    crate::libc_rseq::unregister_this_thread();
}

#[cfg(not(all(target_arch = "x86_64", not(countersink_portable))))]
fn unregister() {}

/// Lets threads and their handlers add, while another calls `watch` with their logs without a pause. In the end the sum has
/// to be exact, which is returned.
pub(crate) fn storm(
    counts: &'static dyn Counts,
    plan: Plan,
    mut watch: impl FnMut(&'static [Line]) + Send,
) -> i64 {
    let _exclusive = signals::exclusive();
    let threads = adders() / 2;
    HANDLERS.store(0, SeqCst);
    signals::handle(SIGUSR2, handler);
    let common = Common {
        counts,
        // One more, for who watches.
        lines: log::shared(adders() + 1),
        plan,
        ids: (0..threads).map(|_| AtomicI32::new(0)).collect(),
        stop: AtomicBool::new(false),
        barrier: Barrier::new(threads + 1),
    };
    let before = counts.sum();
    std::thread::scope(|scope| {
        let common = &common;
        for thread in 0..threads {
            scope.spawn(move || common.work(thread));
        }
        common.barrier.wait();
        let watched = scope.spawn(move || {
            while !common.stop.load(Relaxed) {
                watch(common.lines);
            }
        });
        common.disturb();
        common.stop.store(true, SeqCst);
        common.barrier.wait();
        watched.join().expect("what was watched was right");
    });
    let sum = counts.sum().wrapping_sub(before);
    assert_eq!(sum, exact(common.lines), "the sum is exact");
    println!(
        "seed {SEED:#x}, batch {}: {} additions, {} handlers, sum {sum}",
        plan.batch,
        additions(common.lines),
        HANDLERS.load(SeqCst)
    );
    sum
}
