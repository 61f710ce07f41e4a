//! Tasks: processes or threads that do operations until they are told to stop.
#![allow(unsafe_code)]

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

use countersink::Counter as Operations;
use countersink_harness::clock::RealClock;
use countersink_harness::cpus::{Placement, Topology};
use countersink_harness::runner::{self, ThreadSample};
use countersink_harness::surroundings::{Steal, Surroundings, Watch};

use super::bump::{Bump, Counter};
use super::operations::{Operation, open_missing};
use super::seen::Seen;
use super::stat::CpuTime;
use super::{MISSING, Plan, Workload};
use crate::shared_memory::Shared;

static OPERATIONS: Operations = Operations::new("workload_operations")
    .help("Operations of all tasks of the workload, warm-up included");

/// How tasks are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By fork.
    Processes,
    /// As threads of one process.
    Threads,
}

impl Mode {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Processes => "processes",
            Mode::Threads => "threads",
        }
    }
}

/// Why there is no sample.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// For want of memory.
    #[error("no memory for a counter: {0}")]
    Memory(String),
    /// The file that is not to exist exists.
    #[error("{MISSING} exists: openneg opens a file that does not")]
    Exists,
    /// A task could not be started.
    #[error("a task cannot be started: {0}")]
    Start(io::Error),
    /// An operation failed.
    #[error("task {task} failed: {error}")]
    Operation {
        /// Which task, from 0.
        task: usize,
        /// How.
        error: io::Error,
    },
    /// A task has died.
    #[error("task {task} died{by}", by = .signal.map_or(String::new(), |signal| format!(", killed by signal {signal}")))]
    Died {
        /// Which task, from 0.
        task: usize,
        /// By which signal, if by one.
        signal: Option<i32>,
    },
    /// The counter does not say what was done.
    #[error("{done} operations were done, {counted} were counted")]
    Count {
        /// What tasks say.
        done: u64,
        /// What the counter says.
        counted: i64,
    },
}

/// What tasks did in a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The window, as measured.
    pub window: Duration,
    /// Operations of each task in the window.
    pub operations: Vec<u64>,
    /// Operations of all tasks for each second of CPU time that they used, warm-up included.
    pub per_cpu_second: f64,
    /// How idle all CPUs of the machine were, in percent.
    pub idle: f64,
    /// Whether every task was pinned to a CPU.
    pub pinned: bool,
    /// Whether there were more tasks than CPUs.
    pub oversubscribed: bool,
    /// What the tasks met, from their first operation to their last.
    pub surroundings: Surroundings,
}

impl Sample {
    /// Operations of all tasks in a second.
    pub fn per_second(&self) -> f64 {
        self.operations.iter().sum::<u64>() as f64 / self.window.as_secs_f64()
    }
}

/// All operations that tasks have counted so far, in the region.
pub fn total() -> u64 {
    OPERATIONS.sum()
}

/// The most tasks: what fits the memory that they share.
pub const MOST_TASKS: usize = 1024;

/// What a task and its starter share, on cache lines of its own.
#[repr(align(128))]
struct Task {
    operations: AtomicU64,
    /// An error number, or 0.
    error: AtomicI32,
    /// When it has ended.
    seen: Seen,
}

struct Board {
    go: AtomicBool,
    stop: AtomicBool,
    tasks: [Task; MOST_TASKS],
}

impl Board {
    fn new() -> io::Result<Shared<Board>> {
        let task = || Task {
            operations: AtomicU64::new(0),
            error: AtomicI32::new(0),
            seen: Seen::nothing(),
        };
        Shared::new(Board {
            go: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            tasks: std::array::from_fn(|_| task()),
        })
    }

    /// What a task does, from its start to its end.
    fn run(&self, index: usize, workload: Workload, counter: &Counter, placement: &Placement) {
        let task = &self.tasks[index];
        let cpu = placement.pin(index);
        let done = Operation::new(workload).and_then(|mut operation| {
            while !self.go.load(Acquire) && !self.stop.load(Relaxed) {
                thread::yield_now();
            }
            let clock = RealClock::new();
            let mut done = Ok(());
            let timed = Watch::begin(&clock, cpu).time(&clock, |_| {
                done = self.work(task, &mut operation, counter);
                task.operations.load(Relaxed)
            });
            task.seen.set(&timed.thread);
            done
        });
        if let Err(error) = done {
            let number = error.raw_os_error().unwrap_or(libc::EEXIST);
            task.error.store(number, Relaxed);
        }
    }

    /// Operations until they are to stop.
    fn work(&self, task: &Task, operation: &mut Operation, counter: &Counter) -> io::Result<()> {
        let mut operations = 0;
        while !self.stop.load(Relaxed) {
            operation.run()?;
            counter.add();
            OPERATIONS.inc();
            operations += 1;
            task.operations.store(operations, Relaxed);
        }
        Ok(())
    }
}

impl Plan {
    /// Runs the tasks once, with one addition of this kind in each operation.
    ///
    /// # Errors
    /// See [`WorkloadError`].
    ///
    /// Processes are forked, so call it while the process has one thread.
    pub fn sample(&self, bump: Bump) -> Result<Sample, WorkloadError> {
        if self.workload == Workload::OpenNeg {
            open_missing().map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => WorkloadError::Exists,
                _ => WorkloadError::Operation { task: 0, error },
            })?;
        }
        let tasks = self.tasks.clamp(1, MOST_TASKS);
        let placement = Topology::detect().place(tasks);
        let counter = Counter::new(bump)?;
        let held = counter.sum();
        // Registers the counter, so that tasks which are forked share it.
        OPERATIONS.add(0);
        let board = Board::new().map_err(WorkloadError::Start)?;
        let run = |index| board.run(index, self.workload, &counter, &placement);
        let steal = Steal::begin(&placement.cpus);
        let (window, operations, idle) = match self.mode {
            Mode::Processes => {
                let children = Children::start(tasks, &run)?;
                let seen = self.watch(&board, tasks);
                children.wait()?;
                seen
            }
            Mode::Threads => thread::scope(|scope| {
                let run = &run;
                for index in 0..tasks {
                    let started = thread::Builder::new().spawn_scoped(scope, move || run(index));
                    if let Err(error) = started {
                        board.stop.store(true, Relaxed);
                        return Err(WorkloadError::Start(error));
                    }
                }
                Ok(self.watch(&board, tasks))
            })?,
        };
        let steal_ns = steal.end();
        let board = &board.tasks[..tasks];
        let done: u64 = board.iter().map(|task| task.operations.load(Relaxed)).sum();
        for (index, task) in board.iter().enumerate() {
            let error = task.error.load(Relaxed);
            if error != 0 {
                let error = io::Error::from_raw_os_error(error);
                return Err(WorkloadError::Operation { task: index, error });
            }
        }
        if let Some((counted, held)) = counter.sum().zip(held)
            && counted.wrapping_sub(held) != done as i64
        {
            let counted = counted.wrapping_sub(held);
            return Err(WorkloadError::Count { done, counted });
        }
        let seen: Vec<ThreadSample> = board.iter().map(|task| task.seen.get()).collect();
        let cpu: u64 = seen.iter().filter_map(|thread| thread.cpu_ns).sum();
        let met = runner::Sample {
            elapsed_ns: seen
                .iter()
                .map(|thread| thread.elapsed_ns)
                .max()
                .unwrap_or(0),
            threads: seen,
            oversubscribed: placement.oversubscribed,
            shared_cores: placement.shared_cores,
            steal_ns,
        };
        Ok(Sample {
            window,
            operations,
            per_cpu_second: done as f64 / (cpu.max(1) as f64 / 1e9),
            idle,
            pinned: met.pinned(),
            oversubscribed: placement.oversubscribed,
            surroundings: Surroundings::of(&met),
        })
    }

    /// Lets the tasks go, looks at what they do in the window, and tells them to stop.
    fn watch(&self, board: &Board, tasks: usize) -> (Duration, Vec<u64>, f64) {
        let look = || -> Vec<u64> {
            let tasks = board.tasks[..tasks].iter();
            tasks.map(|task| task.operations.load(Relaxed)).collect()
        };
        board.go.store(true, Release);
        thread::sleep(self.warm_up);
        let cpu_before = CpuTime::now();
        let (begin, before) = (Instant::now(), look());
        thread::sleep(self.window);
        let (after, window) = (look(), begin.elapsed());
        let idle = CpuTime::now().zip(cpu_before);
        board.stop.store(true, Relaxed);
        let operations = after
            .iter()
            .zip(before)
            .map(|(after, before)| after - before);
        let idle = idle.map_or(0.0, |(after, before)| after.idle_since(before));
        (window, operations.collect(), idle)
    }
}

/// Tasks that are processes. They die when this is dropped, and when their parent does.
struct Children(Vec<libc::pid_t>);

impl Children {
    fn start(tasks: usize, run: &dyn Fn(usize)) -> Result<Self, WorkloadError> {
        let mut children = Children(Vec::with_capacity(tasks));
        let parent = std::process::id();
        for index in 0..tasks {
            // SAFETY: this process has one thread, so the child has all that it needs.
            match unsafe { libc::fork() } {
                -1 => return Err(WorkloadError::Start(io::Error::last_os_error())),
                0 => {
                    // SAFETY: no preconditions.
                    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                    // A parent that died before that sends nothing.
                    if std::os::unix::process::parent_id() == parent {
                        run(index);
                    }
                    // SAFETY: nothing of the parent's is to be flushed or dropped.
                    unsafe { libc::_exit(0) };
                }
                child => children.0.push(child),
            }
        }
        Ok(children)
    }

    /// Waits until all have ended.
    fn wait(mut self) -> Result<(), WorkloadError> {
        let mut died = None;
        for (task, child) in std::mem::take(&mut self.0).into_iter().enumerate() {
            let status = wait_for(child);
            if status != 0 {
                let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
                died.get_or_insert(WorkloadError::Died { task, signal });
            }
        }
        died.map_or(Ok(()), Err)
    }
}

fn wait_for(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: a child of this process that nobody else waits for.
    while unsafe { libc::waitpid(child, &mut status, 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    status
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &self.0 {
            // SAFETY: a child of this process that was not waited for.
            unsafe { libc::kill(*child, libc::SIGKILL) };
            wait_for(*child);
        }
    }
}
