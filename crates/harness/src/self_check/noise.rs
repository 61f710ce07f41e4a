//! Noise of known kinds, for samples whose time is invented.

use std::f64::consts::TAU;

use fastrand::Rng;

/// How samples of the same vary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// By a normal distribution with this standard deviation, as a share of the sample.
    Normal(f64),
    /// Mostly little, at times very much: what interrupts and neighbours do.
    Spikes,
    /// Two values, 20 % apart, one as often as the other: what a CPU with two clock rates does.
    TwoHumps,
    /// Slowly up and down, with jumps: what other guests of the machine do.
    Drift,
    /// As 4,096 samples of one loop were on a virtual machine with two busy neighbours, in their order.
    Recorded,
}

/// All kinds, for whoever goes through them.
pub const ALL: [Noise; 5] = [
    Noise::Normal(0.02),
    Noise::Spikes,
    Noise::TwoHumps,
    Noise::Drift,
    Noise::Recorded,
];

/// Each line is a sample, as parts of ten thousand of their median.
const RECORDED: &str = include_str!("recorded.txt");

impl Noise {
    /// In words.
    pub fn name(self) -> String {
        match self {
            Noise::Normal(deviation) => format!("normal, {:.0} %", 100.0 * deviation),
            Noise::Spikes => "spikes".to_owned(),
            Noise::TwoHumps => "two humps, 20 % apart".to_owned(),
            Noise::Drift => "drift with jumps".to_owned(),
            Noise::Recorded => "recorded on a virtual machine".to_owned(),
        }
    }

    /// A source of factors around 1, the same for the same seed.
    pub fn source(self, seed: u64) -> Source {
        let mut rng = Rng::with_seed(seed);
        let recorded: Vec<f64> = match self {
            Noise::Recorded => RECORDED
                .lines()
                .filter_map(|line| line.parse().ok())
                .collect(),
            _ => Vec::new(),
        };
        Source {
            noise: self,
            at: rng.usize(..recorded.len().max(1)),
            recorded,
            level: 1.0,
            rng,
        }
    }
}

/// Where factors come from.
#[derive(Clone, Debug)]
pub struct Source {
    noise: Noise,
    rng: Rng,
    recorded: Vec<f64>,
    at: usize,
    /// Where a drift has got to.
    level: f64,
}

impl Source {
    fn normal(&mut self) -> f64 {
        // Box and Muller's; 1 - f64() is never 0.
        (-2.0 * (1.0 - self.rng.f64()).ln()).sqrt() * (TAU * self.rng.f64()).cos()
    }

    /// What the next sample is multiplied by.
    pub fn factor(&mut self) -> f64 {
        match self.noise {
            Noise::Normal(deviation) => (deviation * self.normal()).exp(),
            Noise::Spikes => {
                let little = (0.005 * self.normal()).exp();
                let is_spike = self.rng.f64() < 0.1;
                if is_spike {
                    little * (1.0 - 0.5 * (1.0 - self.rng.f64()).ln())
                } else {
                    little
                }
            }
            Noise::TwoHumps => {
                let hump = if self.rng.bool() { 1.0 } else { 1.2 };
                hump * (0.005 * self.normal()).exp()
            }
            Noise::Drift => {
                self.level *= (0.005 * self.normal()).exp();
                if self.rng.f64() < 0.01 {
                    self.level = (0.1 * self.normal()).exp();
                }
                self.level * (0.005 * self.normal()).exp()
            }
            Noise::Recorded => {
                let Some(parts) = self.recorded.get(self.at) else {
                    return 1.0;
                };
                self.at = (self.at + 1) % self.recorded.len();
                parts / 10_000.0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_lie_around_one_and_are_those_of_the_seed() {
        for noise in ALL {
            let factors = |seed| {
                let mut source = noise.source(seed);
                (0..2000).map(|_| source.factor()).collect::<Vec<f64>>()
            };
            let found = factors(1);
            assert_eq!(found, factors(1));
            assert_ne!(found, factors(2));
            assert!(
                found.iter().all(|factor| (0.3..30.0).contains(factor)),
                "{noise:?}"
            );
            let median = crate::stats::median(&found).expect("factors");
            assert!((0.8..1.3).contains(&median), "{noise:?}: {median}");
        }
    }

    #[test]
    fn the_recording_is_whole() {
        let source = Noise::Recorded.source(1);
        assert_eq!(source.recorded.len(), 4096);
        assert_eq!(RECORDED.lines().count(), 4096);
    }
}
