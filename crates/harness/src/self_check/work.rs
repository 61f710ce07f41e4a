//! Variants that do a known amount of work.

use std::hint::black_box;

use crate::variant::{Experiment, Point, Variant, Worker};

/// The one that does more, if one does.
pub(super) const SECOND: &str = "second";

/// Additions of one operation, each of which needs the one before.
const ADDITIONS: u32 = 100;

/// Two variants at many points.
pub(super) struct Pairs {
    points: usize,
    more: u32,
}

impl Pairs {
    /// The second does so much more, in whole hundredths.
    pub(super) fn new(points: usize, difference: f64) -> Pairs {
        Pairs {
            points,
            more: (f64::from(ADDITIONS) * difference).round() as u32,
        }
    }
}

impl Experiment for Pairs {
    fn name(&self) -> &str {
        "self-check"
    }

    fn points(&self) -> Vec<Point<'_>> {
        let work = |name, additions| Work { name, additions };
        let point = |number: usize| {
            Point::new("add", &format!("pair {}", number + 1), 1)
                .with(work("first", ADDITIONS))
                .with(work(SECOND, ADDITIONS + self.more))
        };
        (0..self.points).map(point).collect()
    }
}

struct Work {
    name: &'static str,
    additions: u32,
}

impl Variant for Work {
    fn name(&self) -> &str {
        self.name
    }

    fn worker(&self, _thread_index: usize, _threads: usize) -> Box<dyn Worker + '_> {
        Box::new(Adding {
            additions: self.additions,
            value: 1,
        })
    }
}

struct Adding {
    additions: u32,
    value: u64,
}

impl Worker for Adding {
    fn run(&mut self, operations: u64) {
        let mut value = self.value;
        for operation in 0..operations {
            for step in 0..black_box(self.additions) {
                value = (value ^ u64::from(step)).wrapping_add(operation);
            }
        }
        self.value = black_box(value);
    }
}
