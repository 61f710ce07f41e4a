//! Reads the largest value of the present generation.

use super::{Flaw, Mark, Memory, Model};
use crate::LANES;

/// Looks at the generation that a reader makes before it gives up.
const TRIES: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    Bias,
    /// The first word of a lane, or both.
    First(usize),
    Second(usize, u8),
    BiasAgain,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reader {
    next: Next,
    tries: u8,
    bias: Mark,
    largest: u8,
    torn: bool,
    /// For the laws: what was to be shown when the last try began, and the last reset by then.
    floor: u8,
    reset: u8,
}

impl Reader {
    pub(super) fn new() -> Self {
        Reader {
            next: Next::Bias,
            tries: 0,
            bias: (0, 0),
            largest: 0,
            torn: false,
            floor: 0,
            reset: 0,
        }
    }

    /// Runs one step. Whether it was the last.
    pub(super) fn step(&mut self, model: &Model, memory: &Memory) -> bool {
        let value_first = model.has(Flaw::ReaderValueFirst);
        match self.next {
            Next::Bias => {
                self.bias = memory.bias;
                (self.floor, self.reset) = (memory.floor, memory.reset);
                self.next = Next::First(0);
            }
            Next::First(lane) if model.pairs => self.seen(lane, memory.lanes[lane]),
            Next::First(lane) => {
                let (generation, value) = memory.lanes[lane];
                self.next = Next::Second(lane, if value_first { value } else { generation });
            }
            Next::Second(lane, first) if value_first => {
                self.seen(lane, (memory.lanes[lane].0, first));
            }
            Next::Second(lane, first) => self.seen(lane, (first, memory.lanes[lane].1)),
            Next::BiasAgain => {
                let tries = self.tries + 1;
                if memory.bias == self.bias || model.has(Flaw::NoSecondLook) {
                    return true;
                }
                *self = Reader {
                    tries,
                    torn: tries == TRIES,
                    ..Reader::new()
                };
                return self.torn;
            }
        }
        false
    }

    fn seen(&mut self, lane: usize, (generation, value): Mark) {
        if generation == self.bias.0 {
            self.largest = value.max(self.largest);
        }
        self.next = match lane + 1 < LANES {
            true => Next::First(lane + 1),
            false => Next::BiasAgain,
        };
    }

    /// The law of a reader that has ended.
    pub(super) fn check(&self, model: &Model, memory: &Memory) -> Result<(), String> {
        if self.torn {
            return Ok(());
        }
        model
            .check_shown(self.largest, self.floor, self.reset, memory)
            .map_err(|message| format!("reader: {message}"))
    }
}
