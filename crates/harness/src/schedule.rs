//! In which order samples are taken, and how many.
//!
//! A **round** measures the variants A, B, … forwards and then backwards: A B B A. Each variant
//! gets two samples per round, and over a round every variant has the same mean position in time.
//! A drift that is linear in time (a warming CPU, a neighbour that comes) therefore cancels within
//! every round. Measured as all of A and then all of B, it would look like a difference.

use std::time::Duration;

/// Samples of each variant in one round.
pub const SAMPLES_PER_ROUND: usize = 2;

/// Samples of each variant before the first round, to warm up; they are not counted.
pub const WARM_UP_SAMPLES: usize = 1;

/// The fewest rounds of a plan for one process: 3 give the 6 samples that the 95 % interval of a median needs. The
/// interval of a ratio needs 6 rounds.
pub const MIN_ROUNDS: usize = 3;

/// With so many processes, intervals and tests are over processes: as many as the interval of a median needs.
pub const ENOUGH_PROCESSES: usize = 6;

/// Of so many samples of a variant at a point, one may be taken again because it was disturbed.
pub const SAMPLES_PER_REPEAT: usize = 4;

/// How much to measure at each point: samples of a length, [`Plan::samples`] of each variant, and at most a quarter more for samples
/// that were disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    sample: Duration,
    rounds: usize,
}

/// A plan that cannot give a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A sample of no length.
    #[error("a sample must be longer than nothing")]
    NoLength,
    /// Fewer rounds than [`MIN_ROUNDS`].
    #[error("{0} rounds are too few for an interval: at least {MIN_ROUNDS} are needed")]
    TooFewRounds(usize),
}

impl Plan {
    /// Samples of the given length, two per variant and round.
    ///
    /// # Errors
    /// If the length is zero, or there are fewer than [`MIN_ROUNDS`] rounds.
    pub fn new(sample: Duration, rounds: usize) -> Result<Plan, PlanError> {
        if sample.is_zero() {
            return Err(PlanError::NoLength);
        }
        if rounds < MIN_ROUNDS {
            return Err(PlanError::TooFewRounds(rounds));
        }
        Ok(Plan { sample, rounds })
    }

    /// As [`Plan::new`], for one of several processes: intervals are over processes, so a round each will do.
    ///
    /// # Errors
    /// If the length is zero, or there are no rounds.
    pub fn of_replica(sample: Duration, rounds: usize) -> Result<Plan, PlanError> {
        if rounds == 0 {
            return Err(PlanError::TooFewRounds(0));
        }
        let plan = Plan::new(sample, rounds.max(MIN_ROUNDS))?;
        Ok(Plan { rounds, ..plan })
    }

    /// To see that it works: 6 rounds of 10 ms samples.
    pub fn quick() -> Plan {
        Plan {
            sample: Duration::from_millis(10),
            rounds: 6,
        }
    }

    /// To publish: 12 rounds of 250 ms samples.
    pub fn full() -> Plan {
        Plan {
            sample: Duration::from_millis(250),
            rounds: 12,
        }
    }

    /// How long a timed sample is.
    pub fn sample(&self) -> Duration {
        self.sample
    }

    /// How many disturbed samples of a variant are taken again at most; then they are kept, and marked.
    pub fn repeats(&self) -> usize {
        (self.rounds * SAMPLES_PER_ROUND).div_ceil(SAMPLES_PER_REPEAT)
    }

    /// How many samples of each variant are taken, if none is disturbed: those to warm up included.
    pub fn samples(&self) -> usize {
        WARM_UP_SAMPLES + self.rounds * SAMPLES_PER_ROUND
    }

    /// How many rounds count.
    pub fn rounds(&self) -> usize {
        self.rounds
    }
}

impl Default for Plan {
    /// For most uses: 8 rounds of 50 ms samples.
    fn default() -> Plan {
        Plan {
            sample: Duration::from_millis(50),
            rounds: 8,
        }
    }
}

/// The variants' indices in the order in which they are sampled, once warm.
pub fn sequence(variants: usize, rounds: usize) -> impl Iterator<Item = usize> {
    (0..rounds).flat_map(move |_| (0..variants).chain((0..variants).rev()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(variants: usize, rounds: usize) -> Vec<usize> {
        sequence(variants, rounds).collect()
    }

    #[test]
    fn two_variants_go_a_b_b_a() {
        assert_eq!(order(2, 2), [0, 1, 1, 0, 0, 1, 1, 0]);
    }

    #[test]
    fn more_variants_go_forwards_and_backwards() {
        assert_eq!(order(3, 1), [0, 1, 2, 2, 1, 0]);
        assert_eq!(order(1, 2), [0, 0, 0, 0]);
        assert_eq!(order(0, 5), [0; 0]);
    }

    #[test]
    fn every_variant_has_the_same_mean_position_in_every_round() {
        for variants in 1..9 {
            let order = order(variants, 1);
            assert_eq!(order.len(), variants * SAMPLES_PER_ROUND);
            for variant in 0..variants {
                let positions = (0..order.len()).filter(|&i| order[i] == variant);
                assert_eq!(positions.sum::<usize>(), order.len() - 1);
            }
        }
    }

    #[test]
    fn plans_always_give_an_interval() {
        let ms = Duration::from_millis(1);
        assert_eq!(Plan::new(ms, 2), Err(PlanError::TooFewRounds(2)));
        assert_eq!(Plan::new(Duration::ZERO, 9), Err(PlanError::NoLength));
        assert!(Plan::new(ms, MIN_ROUNDS).is_ok());
        assert_eq!(Plan::of_replica(ms, 0), Err(PlanError::TooFewRounds(0)));
        assert_eq!(
            Plan::of_replica(Duration::ZERO, 1),
            Err(PlanError::NoLength)
        );
        assert_eq!(Plan::of_replica(ms, 1).map(|plan| plan.rounds()), Ok(1));
        for plan in [Plan::quick(), Plan::default(), Plan::full()] {
            assert!(crate::stats::median_interval_rank(plan.rounds()).is_some());
        }
    }
}
