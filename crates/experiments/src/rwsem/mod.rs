//! Seed `001_4ba34865ca68465f` (Waiman Long, February 2019): one reader-writer semaphore for every architecture, a
//! `down_read_trylock` that tries for ownership first, and counters for what happens to locks.
//!
//! The seed measures with *locktest*, which was never published: threads take and leave one lock as fast as they can, and the rate of all
//! together is told in kops/s; then it boots and compiles kernels, and prints the events of their locks. Here threads do the
//! same to [`RwSem`](countersink_sync::RwSem) in each form of its `try_read`, to
//! [`PercpuRwSem`](countersink_sync::PercpuRwSem), to the count under a spinlock that the series removes, and to what Rust programs use
//! today; the events are those of a lock that counts them, after each point.
//!
//! The lock guards two words that a writer makes equal one after the other: a reader that sees them differ, or a
//! write that is missing in the end, throws the point's numbers away.

pub mod disassembly;
mod locks;
pub mod published;
mod spinlock;
mod variants;
mod work;

use std::collections::BTreeMap;
use std::sync::Mutex;

use countersink_harness::variant::{Experiment, Point};
use countersink_percpu::choice;

pub use variants::Twins;
pub use work::{Work, work_ns};

/// What is done to the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `try_read`, and leaving if it came in.
    TryRead,
    /// `read` and leaving.
    Read,
    /// `write` and leaving.
    Write,
    /// `try_write`, and leaving if it came in.
    TryWrite,
    /// `read` or `write`, each thread by an order of its own, so many of a hundred being `read`.
    Mixed(u32),
}

impl Op {
    /// What the experiment measures unless something else is asked for.
    pub const DEFAULT: [Op; 5] = [
        Op::TryRead,
        Op::Read,
        Op::Write,
        Op::Mixed(95),
        Op::Mixed(50),
    ];

    /// The name of a point's operation.
    pub fn name(self) -> &'static str {
        match self {
            Op::TryRead => "try-read",
            Op::Read => "read",
            Op::Write => "write",
            Op::TryWrite => "try-write",
            Op::Mixed(_) => "mixed",
        }
    }

    /// The pattern of a point: the share of readers.
    pub fn pattern(self) -> String {
        match self {
            Op::Mixed(percent) => format!("{percent} % readers"),
            _ => "one lock".to_owned(),
        }
    }
}

/// The events of one point, by name.
pub type EventCounts = Vec<(&'static str, u64)>;

/// The events of one point.
#[derive(Clone, Debug)]
pub struct Events {
    /// The operation.
    pub op: Op,
    /// How many threads.
    pub threads: usize,
    /// What was counted, and how often.
    pub counts: EventCounts,
}

/// The experiment.
#[derive(Debug)]
pub struct RwsemExperiment {
    ops: Vec<Op>,
    threads: Vec<usize>,
    work: Work,
    events: Mutex<Vec<Events>>,
}

impl RwsemExperiment {
    /// These operations at these thread counts, with so much work.
    pub fn new(ops: &[Op], threads: &[usize], work: Work) -> Self {
        RwsemExperiment {
            ops: ops.to_vec(),
            threads: threads.to_vec(),
            work,
            events: Mutex::default(),
        }
    }

    /// What happened at each point to the lock that counts events.
    pub fn events(&self) -> Vec<Events> {
        let events = self.events.lock();
        events.map(|events| events.clone()).unwrap_or_default()
    }

    fn note(&self, events: Events) {
        if let Ok(mut all) = self.events.lock() {
            all.push(events);
        }
    }
}

impl Experiment for RwsemExperiment {
    fn name(&self) -> &str {
        "rwsem"
    }

    fn points(&self) -> Vec<Point<'_>> {
        let mut points = Vec::new();
        for &threads in &self.threads {
            for &op in &self.ops {
                points.push(variants::point(self, op, threads));
            }
        }
        points
    }

    fn conditions(&self) -> BTreeMap<String, String> {
        let percpu = match countersink_sync::percpu::availability() {
            Ok(()) => "readers in words of their CPU".to_owned(),
            Err(reason) => format!("an RwSem: {reason}"),
        };
        BTreeMap::from([
            ("mechanism".to_owned(), choice().to_string()),
            ("PercpuRwSem".to_owned(), percpu),
        ])
    }
}
