//! Threads that count on one word while something comes in between.
#![allow(unsafe_code)]

use std::sync::Barrier;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize};

use libc::{SIGUSR1, SIGUSR2, c_int};
use rustix::thread::Pid;

use crate::common::random::Random;
use crate::common::{cpus, libc_rseq, signals};
use crate::counter::Counter;
use crate::timer::Timer;

/// What a handler counts. Far from what the threads can reach, so that a wrong total says whose
/// counts are missing.
const BY_HANDLER: u64 = 1 << 40;

/// How many operations a worker does before it looks whether to stop.
const BATCH: u64 = 256;

/// What a storm consists of. It ends when all of the least numbers have been reached.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    /// How many threads count, for each allowed CPU.
    pub(crate) workers_per_cpu: usize,
    /// The least number of operations, handlers not included.
    pub(crate) operations: u64,
    /// The least number of SIGUSR1 handlers that ran; 0: nobody sends any.
    pub(crate) signals: u64,
    /// The least number of SIGUSR2 handlers that ran, sent by each worker's timer; 0: no timers.
    pub(crate) timers: u64,
    /// The least number of times that a worker was moved to a CPU; 0: nobody is moved.
    pub(crate) moves: u64,
    /// How many of the workers first take back their registration.
    pub(crate) unregistered: usize,
}

/// A timer's period. Between two, a worker does thousands of operations.
const PERIOD_NS: std::ffi::c_long = 30_000;

/// Random numbers start from here: which worker moves to which CPU.
const SEED: u64 = 0x5702_4a11;

/// How much workers stand back behind the thread that disturbs them.
const NICE: c_int = 10;

/// What came of a storm.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Operations of workers.
    pub(crate) operations: u64,
    /// What workers counted.
    pub(crate) by_workers: u64,
    /// What handlers counted.
    pub(crate) by_handlers: u64,
    /// Handlers that ran: for SIGUSR1, and for SIGUSR2.
    pub(crate) runs: [u64; 2],
    /// How often a worker was moved.
    pub(crate) moves: u64,
    /// Impossible states that were seen.
    pub(crate) violations: u64,
    /// What the counter says that it has counted more than before.
    pub(crate) total: u64,
}

impl Report {
    /// Whether everything was counted once.
    pub(crate) fn is_exact(&self) -> bool {
        self.violations == 0 && self.total == self.by_workers.wrapping_add(self.by_handlers)
    }
}

/// What handlers count on; set during a storm.
static COUNTER: AtomicPtr<&dyn Counter> = AtomicPtr::new(core::ptr::null_mut());
static RUNS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static BY_HANDLERS: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(signal: c_int) {
    // SAFETY: storm() stores a pointer to a reference that lives until no worker is left, and only
    // workers are sent signals.
    let counter = unsafe { *COUNTER.load(SeqCst) };
    BY_HANDLERS.fetch_add(counter.count(BY_HANDLER), SeqCst);
    RUNS[usize::from(signal == SIGUSR2)].fetch_add(1, SeqCst);
}

/// A worker, as those see it that disturb it.
#[derive(Debug, Default)]
struct Worker {
    thread: AtomicUsize,
    id: AtomicI32,
}

/// What workers and the storm have in common.
struct Common<'a> {
    counter: &'a dyn Counter,
    workers: Vec<Worker>,
    operations: AtomicU64,
    counted: AtomicU64,
    stop: AtomicBool,
    /// Passed when all workers are there, and when nobody disturbs them any more.
    barrier: Barrier,
}

/// Lets workers count in a storm, and their handlers too.
pub(crate) fn storm(counter: &dyn Counter, plan: &Plan) -> Report {
    let _exclusive = signals::exclusive();
    let workers = plan.workers_per_cpu * cpus::allowed().len();
    let common = Common {
        counter,
        workers: (0..workers).map(|_| Worker::default()).collect(),
        operations: AtomicU64::new(0),
        counted: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        barrier: Barrier::new(workers + 1),
    };
    let before = counter.total();
    for value in RUNS.iter().chain([&BY_HANDLERS]) {
        value.store(0, SeqCst);
    }
    COUNTER.store((&raw const common.counter).cast_mut().cast(), SeqCst);
    signals::handle(SIGUSR1, handler);
    signals::handle(SIGUSR2, handler);
    let mut report = Report::default();
    std::thread::scope(|scope| {
        for index in 0..workers {
            let common = &common;
            scope.spawn(move || work(common, index, plan));
        }
        common.barrier.wait();
        disturb(&common, plan, &mut report);
        common.stop.store(true, SeqCst);
        common.barrier.wait();
    });
    COUNTER.store(core::ptr::null_mut(), SeqCst);
    report.operations = common.operations.load(SeqCst);
    report.by_workers = common.counted.load(SeqCst);
    report.by_handlers = BY_HANDLERS.load(SeqCst);
    report.runs = [0, 1].map(|index| RUNS[index].load(SeqCst));
    report.total = counter.total().wrapping_sub(before);
    println!("{}, seed {SEED:#x}: {report:?}", counter.name());
    report
}

/// Asserts that a storm loses nothing; returns the total.
pub(crate) fn exact(counter: &dyn Counter, plan: &Plan) -> u64 {
    let report = storm(counter, plan);
    assert!(report.is_exact(), "{}: {report:?}", counter.name());
    report.total
}

fn work(common: &Common<'_>, index: usize, plan: &Plan) {
    if index < plan.unregistered {
        libc_rseq::unregister_this_thread();
    }
    let worker = &common.workers[index];
    // Whoever disturbs gets more of a CPU than each of the many it disturbs.
    // SAFETY: no preconditions; 0 is this thread. Where it fails, storms take longer.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
    // SAFETY: no preconditions.
    worker
        .thread
        .store(unsafe { libc::pthread_self() } as usize, SeqCst);
    let id = rustix::thread::gettid().as_raw_nonzero().get();
    worker.id.store(id, SeqCst);
    common.barrier.wait();
    let timer = (plan.timers > 0).then(|| Timer::start(SIGUSR2, PERIOD_NS));
    let mut counted = 0_u64;
    while !common.stop.load(Relaxed) {
        counted += common.counter.count_ones(BATCH);
        common.operations.fetch_add(BATCH, Relaxed);
    }
    drop(timer);
    common.counted.fetch_add(counted, SeqCst);
    common.barrier.wait();
}

/// Disturbs the workers until the plan is fulfilled.
fn disturb(common: &Common<'_>, plan: &Plan, report: &mut Report) {
    let mut random = Random(SEED);
    let allowed = cpus::allowed();
    let reached = |report: &Report| {
        common.operations.load(Relaxed) >= plan.operations
            && RUNS[0].load(SeqCst) >= plan.signals
            && RUNS[1].load(SeqCst) >= plan.timers
            && report.moves >= plan.moves
    };
    while !reached(report) {
        for worker in &common.workers {
            if plan.signals > 0 {
                let thread = worker.thread.load(SeqCst) as libc::pthread_t;
                // SAFETY: the worker waits at the barrier until nobody does this any more.
                let result = unsafe { libc::pthread_kill(thread, SIGUSR1) };
                assert_eq!(result, 0);
            }
            if plan.moves > 0 {
                let cpu = allowed[random.below(allowed.len() as u64) as usize];
                cpus::pin(Pid::from_raw(worker.id.load(SeqCst)), cpu);
                report.moves += 1;
            }
        }
        report.violations += common.counter.violations();
        if plan.signals + plan.moves == 0 {
            std::thread::yield_now();
        }
    }
}
