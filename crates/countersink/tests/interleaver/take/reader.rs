//! Reads what was never taken half-way.

use super::{Flaw, Memory, Model};
use crate::LANES;
use crate::add::{Pair, plus};

/// How often a reader begins before it says that the value is torn.
const TRIES: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    /// The bias words. Each word is judged by itself, so that it makes no difference to load both at
    /// once.
    Bias,
    /// One word of a lane; two at once where the reader can.
    Lane(usize, usize),
    BiasAgain,
    Torn,
    Right,
    /// What is wrong, the value, and the truth when the last try began and ended.
    Wrong(&'static str, Pair, Pair, Pair),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reader {
    next: Next,
    tries: u8,
    bias: Pair,
    sum: Pair,
    /// For the laws: the truth when the try began.
    began: Pair,
}

impl Reader {
    pub(super) fn new() -> Self {
        Reader {
            next: Next::Bias,
            tries: 0,
            bias: [0; 2],
            sum: [0; 2],
            began: [0; 2],
        }
    }

    /// Runs one step. Whether it was the last.
    pub(super) fn step(&mut self, model: &Model, memory: &mut Memory) -> bool {
        match self.next {
            Next::Bias => {
                (self.bias, self.began) = (memory.bias, memory.truth());
                memory.held = Some(0);
                memory.note();
                self.next = Next::Lane(0, 0);
            }
            Next::Lane(lane, word) => {
                let words = if model.pairs { 0..=1 } else { word..=word };
                words.for_each(|word| self.sum[word] += memory.lanes[lane][word]);
                self.next = match (model.pairs || word == 1, lane + 1 < LANES) {
                    (false, _) => Next::Lane(lane, 1),
                    (true, true) => Next::Lane(lane + 1, 0),
                    (true, false) => Next::BiasAgain,
                };
            }
            Next::BiasAgain => {
                let tries = self.tries + 1;
                let next = if memory.bias == self.bias || model.has(Flaw::NoSecondLook) {
                    self.judge(model, memory)
                } else if tries < TRIES {
                    Next::Bias
                } else {
                    Next::Torn
                };
                memory.held = None;
                *self = Reader {
                    next,
                    tries,
                    ..Reader::new()
                };
                return next != Next::Bias;
            }
            Next::Torn | Next::Right | Next::Wrong(..) => {}
        }
        false
    }

    /// Whether a value that is not marked as torn is right.
    fn judge(&self, model: &Model, memory: &Memory) -> Next {
        let (value, began, ended) = (plus(self.sum, self.bias), self.began, memory.truth());
        let held = memory.held.unwrap_or_default();
        // Without a second look the truth may have fallen meanwhile; only what is above any is told.
        let lax = model.has(Flaw::NoSecondLook);
        let in_range = |word: usize| lax || (began[word]..=ended[word]).contains(&value[word]);
        let wrong = if i32::from(value[0]) > held.checked_ilog2().unwrap_or(0) as i32 {
            "above any that there was"
        } else if !in_range(0) || !in_range(1) {
            "outside of what there was"
        } else if model.must_agree && value[1] != 3 * value[0] {
            "which disagree"
        } else if model.must_have_been && held >> value[0] & 1 == 0 {
            "none that there was"
        } else {
            return Next::Right;
        };
        Next::Wrong(wrong, value, began, ended)
    }

    /// The laws of a reader that has ended.
    pub(super) fn check(&self) -> Result<(), String> {
        match self.next {
            Next::Wrong(wrong, value, began, ended) => Err(format!(
                "read: {value:?}, {wrong}: first {began:?}, last {ended:?}"
            )),
            _ => Ok(()),
        }
    }
}
