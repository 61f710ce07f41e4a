//! How long a run is.

use std::time::Duration;

use countersink_harness::schedule::{
    ENOUGH_PROCESSES, MIN_ROUNDS, Plan, SAMPLES_PER_ROUND, WARM_UP_SAMPLES,
};
use countersink_harness::variant::Experiment;

use super::Options;

/// Seconds that all samples of an experiment take, by [`Length`].
pub(super) type Times = [f64; 3];

pub(super) const LOCAL_TIMES: Times = [9.0, 42.0, 300.0];
pub(super) const SPAN_TIMES: Times = [8.0, 30.0, 150.0];
pub(super) const RWSEM_TIMES: Times = [11.0, 60.0, 400.0];
pub(super) const RWSEM_PUBLISHED_TIMES: Times = [3.0, 20.0, 120.0];
/// Threads for each CPU in the last column of `rwsem`.
pub(super) const OVERSUBSCRIBED: usize = 4;
pub(super) const BATCH_TIMES: Times = [7.5, 40.0, 300.0];
/// How long a run of `check-before-set` is, by [`Length`]; where memory is large, as long as a pass takes.
pub(super) const CHECK_BEFORE_SET_SAMPLES: [Duration; 3] = [
    Duration::from_millis(3),
    Duration::from_millis(20),
    Duration::from_millis(100),
];
/// Its rounds, whatever the length: it is many set-ups.
const CHECK_BEFORE_SET_ROUNDS: usize = 6;
/// How long each way to count is watched, by [`Length`].
pub(super) const ACCURACY_TIMES: [Duration; 3] = [
    Duration::from_millis(200),
    Duration::from_millis(1000),
    Duration::from_secs(10),
];
/// Rounds of all levels of the page tables in all processes, a few ms each.
const PAGE_TABLE_ROUNDS: [usize; 3] = [36, 96, 300];
/// The fewest of a process: what is told of its rounds has an interval.
const FEWEST_PAGE_TABLE_ROUNDS: usize = 6;

/// No sample is shorter, however many there are.
pub(super) const SHORTEST_SAMPLE: Duration = Duration::from_millis(2);
/// The longest samples, by [`Length`].
pub(super) const LONGEST_SAMPLES: [Duration; 3] = [
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(250),
];

/// How long a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Quick,
    Default,
    Full,
}

impl Length {
    pub(super) fn of(options: &Options) -> Self {
        match options {
            Options { quick: true, .. } => Length::Quick,
            Options { full: true, .. } => Length::Full,
            _ => Length::Default,
        }
    }

    /// Samples that fill the time: as long as there is time for, with so many rounds that ratios have
    /// intervals.
    pub(super) fn plan(
        self,
        times: &Times,
        experiment: &dyn Experiment,
        processes: usize,
    ) -> anyhow::Result<Plan> {
        let seconds = times[self as usize];
        let longest = LONGEST_SAMPLES[self as usize].as_secs_f64();
        // One besides, which shows how far a variant is from itself.
        let points = experiment.points();
        let variants: usize = points.iter().map(|point| point.variants.len() + 1).sum();
        let rounds = match self {
            Length::Quick => 6,
            Length::Default | Length::Full => 12,
        };
        let rounds = rounds_of_each(rounds, processes);
        let of_each = WARM_UP_SAMPLES + SAMPLES_PER_ROUND * rounds;
        let samples = variants * of_each * processes;
        let sample =
            (seconds / samples.max(1) as f64).clamp(SHORTEST_SAMPLE.as_secs_f64(), longest);
        replicated(Duration::from_secs_f64(sample), rounds, processes)
    }

    /// The plan of `check-before-set`, whose samples are of a given length.
    pub(super) fn plan_of_check_before_set(self, processes: usize) -> anyhow::Result<Plan> {
        let sample = CHECK_BEFORE_SET_SAMPLES[self as usize];
        replicated(
            sample,
            rounds_of_each(CHECK_BEFORE_SET_ROUNDS, processes),
            processes,
        )
    }
}

/// Rounds of the page tables in each process.
pub(super) fn page_table_rounds(length: Length, processes: usize) -> usize {
    (PAGE_TABLE_ROUNDS[length as usize] / processes).max(FEWEST_PAGE_TABLE_ROUNDS)
}

/// The rounds of each process: fresh ones share them.
fn rounds_of_each(rounds: usize, processes: usize) -> usize {
    let least = if processes < ENOUGH_PROCESSES {
        MIN_ROUNDS
    } else {
        1
    };
    (rounds / processes).max(least)
}

fn replicated(sample: Duration, rounds: usize, processes: usize) -> anyhow::Result<Plan> {
    Ok(match processes {
        processes if processes < ENOUGH_PROCESSES => Plan::new(sample, rounds)?,
        _ => Plan::of_replica(sample, rounds)?,
    })
}

#[cfg(test)]
mod tests {
    use countersink_experiments::batch::BatchExperiment;
    use countersink_experiments::local::LocalExperiment;
    use countersink_experiments::span::SpanExperiment;

    use super::*;

    #[test]
    fn runs_fit_their_time() {
        let local: &dyn Experiment = &LocalExperiment::new(&[1, 2]);
        let span: &dyn Experiment = &SpanExperiment::new(&[1, 2]);
        let batch: &dyn Experiment = &BatchExperiment::new(&[1, 2]);
        for (times, experiment, quick, default) in [
            (&LOCAL_TIMES, local, 10.0, 45.0),
            (&SPAN_TIMES, span, 9.0, 35.0),
            (&BATCH_TIMES, batch, 10.0, 45.0),
        ] {
            for (length, most) in [(Length::Quick, quick), (Length::Default, default)] {
                for processes in [1, 6] {
                    let plan = length.plan(times, experiment, processes).expect("a plan");
                    let points = experiment.points();
                    let variants: usize = points.iter().map(|p| p.variants.len() + 1).sum();
                    let samples = variants * plan.samples() * processes;
                    let seconds = plan.sample().as_secs_f64() * samples as f64;
                    // However many processes, no sample is shorter than 2 ms.
                    assert!(
                        seconds <= most * processes.div_ceil(2) as f64,
                        "{seconds} s"
                    );
                }
            }
        }
    }
}
