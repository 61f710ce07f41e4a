//! Seed `004_d532f168f1f08558`'s question: does an addition to a counter that is a nanosecond faster make a system call
//! faster?
//!
//! The seed changed `percpu_counter`, found 1 % more failed look-ups of paths in will-it-scale, and later could not find it any more. Here are that
//! test and others of its size, with an addition to a counter in each operation as the kernel's paths have it: whether one
//! can be told from another is the answer. Tasks are processes or threads, pinned to a CPU each, cores before SMT siblings; a sample is what
//! they did in a window, divided by the window as it was measured.
//!
//! - [`Workload::OpenNeg`]: the seed's, opening a file that does not exist;
//! - [`Workload::Pft`]: page faults, which the mails of seed `001_4ba34865ca68465f` count by CPU and by second;
//! - [`Workload::Pipe`]: one byte through the task's own pipe, a test that the mails of seed `002_96314763cc90fe8f` mention;
//! - [`Workload::SchedYield`] and [`Workload::GetPpid`]: little more than a system call.

mod bump;
mod operations;
mod seen;
mod stat;
mod tasks;

use std::time::Duration;

pub use bump::Bump;
pub use tasks::{MOST_TASKS, Mode, Sample, WorkloadError, total};

/// What every operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Opens a file that is not there.
    OpenNeg,
    /// Touches a page for the first time.
    Pft,
    /// Writes a byte to a pipe and reads it.
    Pipe,
    /// Yields the CPU.
    SchedYield,
    /// Asks for the parent.
    GetPpid,
}

/// The file that [`Workload::OpenNeg`] opens.
pub const MISSING: &str = "/tmp/nonexistent";

impl Workload {
    /// All of them.
    pub const ALL: [Workload; 5] = [
        Workload::OpenNeg,
        Workload::Pft,
        Workload::Pipe,
        Workload::SchedYield,
        Workload::GetPpid,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Workload::OpenNeg => "openneg",
            Workload::Pft => "pft",
            Workload::Pipe => "pipe",
            Workload::SchedYield => "sched_yield",
            Workload::GetPpid => "getppid",
        }
    }

    /// What it is, as the title of a plot.
    pub fn title(self) -> &'static str {
        match self {
            Workload::OpenNeg => "Failed open of a file that does not exist",
            Workload::Pft => "Anonymous memory page fault",
            Workload::Pipe => "pipe read/write",
            Workload::SchedYield => "sched_yield()",
            Workload::GetPpid => "getppid()",
        }
    }
}

/// What is measured at once.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// What.
    pub workload: Workload,
    /// How tasks are made.
    pub mode: Mode,
    /// How many.
    pub tasks: usize,
    /// Before the window.
    pub warm_up: Duration,
    /// The window.
    pub window: Duration,
}
