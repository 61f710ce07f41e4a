//! Seed `002_96314763cc90fe8f` (Christoph Lameter, April 2007): simple performance counters, and what
//! they showed of `virt_to_page`.
//!
//! The seed puts a span around the look-up of an object's page in `kfree`, and boots two kernels: one
//! with a virtual memmap, where the look-up is arithmetic, and one with sparsemem, where it reads a table
//! of sections first. It prints events, total (min/avg/max), and finds 9 against 18 ns on average and 322 ns
//! against 28.7 us at most: "sparsemem may once in a while have to deal with a cache miss".
//!
//! Here:
//! - the same look-ups through the same two tables, each in a span of its own, [`HOT`] and [`COLD`]; the
//!   seed's kernels were something in between. The page's own structure is used right after the
//!   span, as `kfree` does it; in a second pair of points within the span, which is what a program waits
//!   for. An empty span stands beside them: what it shows is in every other figure, subtracted nowhere;
//! - what counting and timing cost, against what they cannot do without;
//! - [`page_tables`]: the seed's other sites, as far as they can be seen from outside the kernel.
//!
//! What the seed got wrong is not done here: its figures are of one boot each, so a difference may be the
//! boot's. Here the tables alternate, and each sample's figures are compared round by round. All
//! look-ups are counted, and checked.

mod costs;
mod instructions;
mod look_up;
pub mod page_tables;
mod peers;
pub mod published;
pub mod readings;
mod tables;

use std::collections::BTreeMap;

use countersink::clock::{self, Source};
use countersink_harness::result::{ExperimentResult, PointResult};
use countersink_harness::stats::Summary;
use countersink_harness::variant::{Experiment, Point};
use countersink_percpu::choice;

pub use costs::{COUNT, IN_TURN, SAME, TIME};
pub use look_up::{COLD, FIRST_USE, HOT, LOOK_UP};

use readings::{Figure, Reading, Readings};

/// The experiment.
#[derive(Debug)]
pub struct SpanExperiment {
    /// The thread counts of the costs.
    threads: Vec<usize>,
    readings: Readings,
}

impl SpanExperiment {
    /// The look-ups, and the costs at these thread counts.
    pub fn new(threads: &[usize]) -> Self {
        SpanExperiment {
            threads: threads.to_vec(),
            readings: Readings::default(),
        }
    }

    /// What the look-ups' span showed so far.
    pub fn readings(&self) -> Vec<Reading> {
        self.readings.get()
    }
}

impl Experiment for SpanExperiment {
    fn name(&self) -> &str {
        "span"
    }

    fn points(&self) -> Vec<Point<'_>> {
        let mut points = vec![
            look_up::point::<false, false>(&self.readings),
            look_up::point::<false, true>(&self.readings),
        ];
        if instructions::CAN_EVICT {
            points.push(look_up::point::<true, false>(&self.readings));
            points.push(look_up::point::<true, true>(&self.readings));
        }
        points.extend(self.threads.iter().map(|&threads| costs::count(threads)));
        points.extend(self.threads.iter().map(|&threads| costs::in_turn(threads)));
        points.extend(self.threads.iter().map(|&threads| costs::time(threads)));
        points
    }

    fn conditions(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("mechanism".to_owned(), choice().to_string()),
            ("span clock".to_owned(), span_clock()),
            ("metrics".to_owned(), costs::home()),
        ])
    }
}

/// The clock of spans, and its steps: shorter times show in averages only.
fn span_clock() -> String {
    let name = match clock::source() {
        Source::Cycles => "cycle counter, the same on all CPUs",
        Source::CyclesOfEachCpu => "cycle counter, perhaps not the same on all CPUs",
        _ => "CLOCK_MONOTONIC in ns",
    };
    let mut last = clock::now().ticks;
    let steps = (0..1000).map(|_| {
        let before = std::mem::replace(&mut last, clock::now().ticks);
        last.wrapping_sub(before)
    });
    match steps.fold(0, greatest_common_divisor) {
        0 | 1 => name.to_owned(),
        step => format!("{name}, in steps of {step} ticks"),
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Adds what spans showed to the measured points: the averages of the samples, in the pattern `...-span`.
pub fn add_readings(measured: &mut ExperimentResult, readings: &[Reading]) {
    let points = readings.iter().filter_map(|reading| {
        let same = |point: &&PointResult| {
            point.variant == reading.variant
                && point.op == reading.op
                && point.pattern == reading.pattern
        };
        let point = measured.points.iter().find(same)?;
        let samples = reading.figures(Figure::Average);
        Some(PointResult {
            pattern: format!("{}-span", reading.pattern),
            wall: Summary::of(&samples)?,
            thread: None,
            samples,
            thread_samples: Vec::new(),
            // Of this process alone.
            processes: 1,
            ..point.clone()
        })
    });
    let points: Vec<PointResult> = points.collect();
    measured.points.extend(points);
}
