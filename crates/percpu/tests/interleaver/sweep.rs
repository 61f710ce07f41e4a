//! A reader that adds up the lanes, one load at a time, while others add.

use crate::model::Memory;

/// Which word each pass over the lanes adds up.
pub(crate) type Passes = &'static [usize];

/// The sum of the first word.
pub(crate) const SUM: Passes = &[0];

/// A gauge, ups in the first word and downs in the second: downs, ups, downs.
pub(crate) const GAUGE: Passes = &[1, 0, 1];

/// The same without the last pass, which leaves no lower bound.
pub(crate) const GAUGE_SHORT: Passes = &[1, 0];

/// A sweep in progress. What the laws compare with is noted by its own steps: the true sums are
/// those of all lanes at one instant, by the law that no count is lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sweep {
    passes: Passes,
    lane: usize,
    done: Vec<Pass>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Pass {
    sum: i64,
    /// The true sums of both words at the first load.
    before: [i64; 2],
    /// The true sums of both words at the last load.
    after: [i64; 2],
}

impl Sweep {
    pub(crate) fn new(passes: Passes) -> Self {
        Sweep {
            passes,
            lane: 0,
            done: Vec::new(),
        }
    }

    /// Loads one word. Whether it was the last.
    pub(crate) fn step(&mut self, memory: &Memory) -> bool {
        if self.lane == 0 {
            self.done.push(Pass {
                before: truth(memory),
                ..Pass::default()
            });
        }
        let word = self.passes[self.done.len() - 1];
        if let Some(pass) = self.done.last_mut() {
            pass.sum += memory.lanes[self.lane][word] as i64;
            self.lane += 1;
            if self.lane == memory.lanes.len() {
                pass.after = truth(memory);
                self.lane = 0;
            }
        }
        self.lane == 0 && self.done.len() == self.passes.len()
    }

    /// The laws of a sweep that has ended.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (pass, &word) in self.done.iter().zip(self.passes) {
            let (low, high) = (pass.before[word], pass.after[word]);
            if !(low..=high).contains(&pass.sum) {
                return Err(format!("sweep: {} is outside {low}..={high}", pass.sum));
            }
        }
        let [first, ups, rest @ ..] = self.done.as_slice() else {
            return Ok(());
        };
        let last = rest.first().unwrap_or(first);
        let (lower, upper) = (ups.sum - last.sum, ups.sum - first.sum);
        let [began, ended] = [ups.before, ups.after].map(|[up, down]| up - down);
        if lower > ended || upper < began {
            return Err(format!(
                "gauge: bounds {lower}..={upper}, was {began}, then {ended}"
            ));
        }
        Ok(())
    }
}

fn truth(memory: &Memory) -> [i64; 2] {
    let sum = |word: usize| memory.lanes.iter().map(|lane| lane[word] as i64).sum();
    [sum(0), sum(1)]
}
