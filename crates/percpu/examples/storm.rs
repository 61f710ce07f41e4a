//! Counts from many threads of several processes while all of them are moved between CPUs, and
//! checks the total.
//!
//! ```text
//! cargo run --release -p countersink-percpu --example storm [THREADS_PER_CPU [ADDS]]
//! ```
//!
//! Each of three processes starts 4 threads for each CPU. Each thread adds 1 to the same word 100,000
//! times, and after each 1,000 moves its neighbour to another CPU. Where memory cannot be shared there
//! is one process, and where threads cannot be moved nobody moves them.
//!
//! Prints how this system counts, what was counted and what should have been. Exit status: 0 if they
//! are the same, 1 if not, 2 for arguments that make no sense.
#![allow(unsafe_code)]

use std::process::ExitCode;
use std::sync::{Barrier, OnceLock};

use countersink_percpu::{Segment, SegmentError, Slot, choice};

/// The processes, where they can count together.
const PROCESSES: u64 = 3;
/// How often a thread moves its neighbour.
const ADDS_PER_MOVE: u64 = 1_000;

/// What each process does.
#[derive(Clone, Copy)]
struct Storm {
    threads: usize,
    /// For each thread.
    adds: u64,
}

impl Storm {
    /// As the arguments say; `None` if they make no sense.
    fn from_arguments() -> Option<Self> {
        let mut arguments = std::env::args().skip(1);
        let per_cpu: usize = arguments.next().map_or(Some(4), |text| text.parse().ok())?;
        let adds = arguments
            .next()
            .map_or(Some(100_000), |text| text.parse().ok())?;
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
        let threads = cpus.checked_mul(per_cpu)?;
        (threads > 0 && arguments.next().is_none()).then_some(Storm { threads, adds })
    }

    /// Counts with all threads of this process.
    fn run(self, word: Slot<'_>, moves: Slot<'_>) {
        let cpus = os::allowed();
        let threads: Vec<_> = (0..self.threads).map(|_| OnceLock::new()).collect();
        let start = Barrier::new(self.threads);
        let count = |number: usize| {
            let _ = threads[number].set(os::this_thread());
            start.wait();
            let neighbour = threads[(number + 1) % self.threads].get();
            let mut to = cpus.iter().cycle().skip(number % cpus.len().max(1));
            for add in 0..self.adds {
                word.inc();
                if add.is_multiple_of(ADDS_PER_MOVE)
                    && let (Some(thread), Some(cpu)) = (neighbour, to.next())
                    && os::move_thread(*thread, *cpu)
                {
                    moves.inc();
                }
            }
        };
        std::thread::scope(|scope| {
            for number in 0..self.threads {
                let count = &count;
                scope.spawn(move || count(number));
            }
        });
    }
}

/// Memory for the counters, and how many processes can count in it.
fn memory() -> Result<(Segment, u64), SegmentError> {
    match Segment::shared() {
        Ok(segment) => Ok((segment, PROCESSES)),
        Err(_) => Ok((Segment::private()?, 1)),
    }
}

fn main() -> ExitCode {
    let Some(storm) = Storm::from_arguments() else {
        eprintln!("usage: storm [THREADS_PER_CPU [ADDS]]");
        return ExitCode::from(2);
    };
    let (segment, processes) = match memory() {
        Ok(memory) => memory,
        Err(error) => {
            eprintln!("storm: {error}");
            return ExitCode::FAILURE;
        }
    };
    let [Some(word), Some(moves)] = [segment.slot(0), segment.slot(1)] else {
        unreachable!("a segment has more than two words");
    };
    // Before there are other threads, which a child would not have.
    let children: Vec<_> = (1..processes)
        .map(|_| os::fork(|| storm.run(word, moves)))
        .collect();
    storm.run(word, moves);
    let ended_well = children.into_iter().all(os::ended_well);

    let expected = processes * storm.threads as u64 * storm.adds;
    println!("mechanism: {}", choice());
    println!("processes: {processes}, of {} threads each", storm.threads);
    println!("moves:     {}", moves.sum());
    println!("total:     {}", word.sum());
    println!("expected:  {expected}");
    ExitCode::from(u8::from(!ended_well || word.sum() != expected))
}

#[cfg(target_os = "linux")]
mod os {
    use rustix::process::{Pid, WaitOptions, waitpid};
    use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};

    /// The CPUs that this thread may use.
    pub(crate) fn allowed() -> Vec<usize> {
        let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        (0..CpuSet::MAX_CPU)
            .filter(|cpu| set.is_set(*cpu))
            .collect()
    }

    /// This thread's number.
    pub(crate) fn this_thread() -> Pid {
        gettid()
    }

    /// Moves a thread to a CPU; whether it was moved, which it was not if it has ended.
    pub(crate) fn move_thread(thread: Pid, cpu: usize) -> bool {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(Some(thread), &set).is_ok()
    }

    /// Runs a function in a child, which then ends.
    pub(crate) fn fork(body: impl FnOnce()) -> Option<Pid> {
        // SAFETY: this process has one thread, so the child misses nothing.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            body();
            std::process::exit(0);
        }
        Pid::from_raw(pid.max(0))
    }

    /// Waits for a child; whether there was one and it ended with status 0.
    pub(crate) fn ended_well(child: Option<Pid>) -> bool {
        let status = child.and_then(|pid| waitpid(Some(pid), WaitOptions::empty()).ok()?);
        status.is_some_and(|(_, status)| status.exit_status() == Some(0))
    }
}

/// Systems on which nothing is shared and nobody moved.
#[cfg(not(target_os = "linux"))]
mod os {
    pub(crate) fn allowed() -> Vec<usize> {
        vec![0]
    }

    pub(crate) fn this_thread() {}

    pub(crate) fn move_thread(_: (), _: usize) -> bool {
        false
    }

    pub(crate) fn fork(_: impl FnOnce()) {}

    pub(crate) fn ended_well(_: ()) -> bool {
        true
    }
}
