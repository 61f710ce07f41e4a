//! Makes a new generation.

use super::{Flaw, Mark, Memory, Model, Takes};
use crate::{LANES, SHARED};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    /// Only with a flaw: reads the clock.
    EarlyClock,
    Bias,
    Clock,
    /// Looks for what it takes in a lane.
    Look(usize),
    Exchange,
    LookAfter(usize),
    /// Only with a flaw.
    Zero(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Resetter {
    next: Next,
    tick: u8,
    bias: Mark,
    taken: u8,
    /// For the laws: what must be taken.
    floor: u8,
}

impl Resetter {
    pub(super) fn new(model: &Model) -> Self {
        Resetter {
            next: match model.has(Flaw::TickBeforeGeneration) {
                true => Next::EarlyClock,
                false => Next::Bias,
            },
            tick: 0,
            bias: (0, 0),
            taken: 0,
            floor: 0,
        }
    }

    /// Runs one step. Whether it was the last.
    pub(super) fn step(&mut self, model: &Model, memory: &mut Memory) -> bool {
        match self.next {
            Next::EarlyClock => (self.tick, self.next) = (memory.tick(), Next::Bias),
            Next::Bias => {
                (self.bias, self.taken) = (memory.bias, 0);
                if model.takes != Takes::Nothing {
                    self.floor = memory.floor;
                }
                self.next = match model.has(Flaw::TickBeforeGeneration) {
                    true => Next::Exchange,
                    false => Next::Clock,
                };
            }
            Next::Clock => {
                self.tick = memory.tick();
                self.next = match model.takes {
                    Takes::BeforeReset => Next::Look(0),
                    Takes::Nothing | Takes::AfterReset => Next::Exchange,
                };
            }
            Next::Exchange if memory.bias != self.bias => {
                (self.bias, self.next) = ((0, 0), Next::Bias);
            }
            Next::Exchange => return self.exchange(model, memory),
            Next::Look(lane) | Next::LookAfter(lane) => return self.look(lane, memory),
            Next::Zero(lane) => {
                memory.lanes[lane] = (0, 0);
                memory.foreign_store |= lane != SHARED;
                self.next = Next::Zero(lane + 1);
                return lane + 1 == LANES;
            }
        }
        false
    }

    fn exchange(&mut self, model: &Model, memory: &mut Memory) -> bool {
        memory.bias = (self.bias.0 + 1, self.tick);
        memory.reset = memory.reset.max(self.tick);
        if model.exact {
            self.floor = memory.floor;
        }
        (memory.floor, self.tick) = (0, 0);
        if model.takes == Takes::AfterReset {
            self.next = Next::LookAfter(0);
            return false;
        }
        (self.bias, self.next) = ((0, 0), Next::Zero(0));
        !model.has(Flaw::ZeroesLanes)
    }

    fn look(&mut self, lane: usize, memory: &Memory) -> bool {
        let (generation, value) = memory.lanes[lane];
        if generation == self.bias.0 {
            self.taken = value.max(self.taken);
        }
        let last = lane + 1 == LANES;
        let before = matches!(self.next, Next::Look(_));
        self.next = match (before, last) {
            (true, false) => Next::Look(lane + 1),
            (true, true) => Next::Exchange,
            (false, _) => Next::LookAfter(lane + 1),
        };
        last && !before
    }

    /// The law of a resetter that has ended.
    pub(super) fn check(&self) -> Result<(), String> {
        let Resetter { taken, floor, .. } = self;
        match taken < floor {
            true => Err(format!("taken: {floor} is recorded, and {taken} was taken")),
            false => Ok(()),
        }
    }
}
