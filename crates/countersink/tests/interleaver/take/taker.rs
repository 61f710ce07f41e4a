//! Takes what the words hold.

use super::{Flaw, Memory, Model};
use crate::LANES;
use crate::add::{Pair, plus};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    Bias,
    Lane(usize),
    Exchange,
    /// Only with a flaw: the second word.
    ExchangeSecond,
    /// Tells the caller.
    Report,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Taker {
    next: Next,
    bias: Pair,
    /// Of the lanes; once the bias was exchanged, what was taken.
    sum: Pair,
}

impl Taker {
    pub(super) fn new(model: &Model) -> Self {
        let lanes_first = model.has(Flaw::LanesBeforeBias) || model.has(Flaw::ZeroesLanes);
        Taker {
            next: match lanes_first {
                true => Next::Lane(0),
                false => Next::Bias,
            },
            bias: [0; 2],
            sum: [0; 2],
        }
    }

    /// Runs one step. Whether it was the last.
    pub(super) fn step(&mut self, model: &Model, memory: &mut Memory) -> bool {
        match self.next {
            Next::Bias => {
                self.bias = memory.bias;
                self.next = match model.has(Flaw::LanesBeforeBias) {
                    true => Next::Exchange,
                    false => Next::Lane(0),
                };
            }
            Next::Lane(lane) => self.look(lane, model, memory),
            Next::Exchange if model.has(Flaw::TwoExchanges) => {
                self.exchange(0, memory);
                self.next = Next::ExchangeSecond;
            }
            Next::ExchangeSecond => {
                self.exchange(1, memory);
                self.next = Next::Report;
            }
            Next::Exchange if memory.bias == self.bias => {
                self.exchange(0, memory);
                self.exchange(1, memory);
                self.next = Next::Report;
            }
            Next::Exchange => *self = Taker::new(model),
            Next::Report => {
                memory.reported = plus(memory.reported, self.sum);
                return true;
            }
        }
        false
    }

    fn look(&mut self, lane: usize, model: &Model, memory: &mut Memory) {
        self.sum = plus(self.sum, memory.lanes[lane]);
        if model.has(Flaw::ZeroesLanes) {
            memory.taken = plus(memory.taken, memory.lanes[lane]);
            memory.lanes[lane] = [0; 2];
            memory.note();
        }
        self.next = match (lane + 1 < LANES, model.flaw) {
            (true, _) => Next::Lane(lane + 1),
            (_, Some(Flaw::LanesBeforeBias)) => Next::Bias,
            (_, Some(Flaw::ZeroesLanes)) => Next::Report,
            _ => Next::Exchange,
        };
    }

    /// Stores minus the lanes' sum to a bias word, if that is still what it was.
    fn exchange(&mut self, word: usize, memory: &mut Memory) {
        let mut taken = 0;
        if memory.bias[word] == self.bias[word] {
            taken = self.sum[word] + self.bias[word];
            memory.bias[word] = -self.sum[word];
        }
        memory.taken[word] += taken;
        memory.note();
        (self.bias[word], self.sum[word]) = (0, taken);
    }

    /// What it took and has not told.
    pub(super) fn unreported(&self) -> Pair {
        match self.next {
            Next::Report => self.sum,
            _ => [0; 2],
        }
    }

    /// The laws of what was taken.
    pub(super) fn check(&self) -> Result<(), String> {
        let taken = self.unreported();
        if taken[0] < 0 || taken[1] < 0 {
            return Err(format!("take: below zero: {taken:?}"));
        }
        if taken[1] != 3 * taken[0] {
            return Err(format!("take: disagrees: {taken:?}"));
        }
        Ok(())
    }
}
