//! Records one sample.

use countersink_interleaver::Place;

use super::{Flaw, Mark, Memory, Model, Way};
use crate::SHARED;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    /// Reads the clock.
    Stop,
    /// The quick check: the present generation, then the two words of a lane one by one, perhaps on
    /// another CPU by then.
    QuickGeneration,
    QuickFirst {
        present: u8,
    },
    QuickSecond {
        present: u8,
        lane: usize,
        first: u8,
    },
    /// Loads the bias pair, both words at once.
    Bias,
    /// Loads the pair of the CPU's lane.
    Lane,
    /// Enters a section and loads the lane's pair.
    Section {
        expected: Mark,
    },
    /// In the section: compares, and stores as its commit.
    Commit {
        expected: Mark,
        cpu: usize,
        held: Mark,
    },
    /// The same on the shared lane, by one locked instruction.
    Locked {
        expected: Mark,
    },
    Recheck,
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Recorder {
    next: Next,
    tick: u8,
    /// The generation that is to be stored.
    generation: u8,
    /// For the laws: the generation when the sample stopped.
    born: u8,
}

impl Recorder {
    pub(super) fn new() -> Self {
        Recorder {
            next: Next::Stop,
            tick: 0,
            generation: 0,
            born: 0,
        }
    }

    pub(super) fn in_section(&self) -> bool {
        matches!(self.next, Next::Commit { .. })
    }

    pub(super) fn abort(&mut self) {
        if let Next::Commit { expected, .. } = self.next {
            self.next = Next::Locked { expected };
        }
    }

    /// Runs one step. Whether it was the last.
    pub(super) fn step(&mut self, model: &Model, at: Place, memory: &mut Memory) -> bool {
        let value = model.values[at.thread];
        self.next = match self.next {
            Next::Stop => {
                (self.tick, self.born) = (memory.clock, memory.bias.0);
                memory.stopped[at.thread] = memory.clock;
                match model.quick {
                    true => Next::QuickGeneration,
                    false => Next::Bias,
                }
            }
            Next::QuickGeneration | Next::QuickFirst { .. } | Next::QuickSecond { .. } => {
                self.quick_check(value, model.has(Flaw::QuickValueFirst), at.cpu, memory)
            }
            Next::Bias => {
                self.generation = memory.bias.0;
                if self.tick < memory.bias.1 && !model.has(Flaw::NoTick) {
                    // It belongs to what was reset.
                    Next::Done
                } else if model.way == Way::InSection {
                    Next::Section { expected: (0, 0) }
                } else {
                    Next::Lane
                }
            }
            Next::Lane => self.look(model, memory.lanes[at.cpu], value),
            Next::Section { expected } if model.stepped => Next::Locked { expected },
            Next::Section { expected } => Next::Commit {
                expected,
                cpu: at.cpu,
                held: memory.lanes[at.cpu],
            },
            Next::Commit {
                expected,
                cpu,
                held,
            } => self.exchange(model, [expected, held], value, &mut memory.lanes[cpu]),
            Next::Locked { expected } => {
                let held = memory.lanes[SHARED];
                let lane = &mut memory.lanes[SHARED];
                self.exchange(model, [expected, held], value, lane)
            }
            Next::Recheck if memory.bias.0 == self.generation => Next::Done,
            Next::Recheck => Next::Bias,
            Next::Done => Next::Done,
        };
        if self.next != Next::Done {
            return false;
        }
        if self.born == memory.bias.0 {
            memory.floor = memory.floor.max(value);
        }
        (self.tick, self.generation, self.born) = (0, 0, 0);
        true
    }

    /// Whatever lane it is: if that shows a value as large, so does the whole.
    fn quick_check(&self, value: u8, value_first: bool, cpu: usize, memory: &Memory) -> Next {
        match self.next {
            Next::QuickFirst { present } => {
                let (generation, held) = memory.lanes[cpu];
                Next::QuickSecond {
                    present,
                    lane: cpu,
                    first: if value_first { held } else { generation },
                }
            }
            Next::QuickSecond {
                present,
                lane,
                first,
            } => {
                let (generation, held) = memory.lanes[lane];
                let seen = match value_first {
                    true => (generation, first),
                    false => (first, held),
                };
                match seen.0 == present && seen.1 >= value {
                    true => Next::Done,
                    false => Next::Bias,
                }
            }
            _ => Next::QuickFirst {
                present: memory.bias.0,
            },
        }
    }

    /// Whether a lane's pair makes it needless to store this value.
    fn is_covered(&self, way: Way, lane: Mark, value: u8) -> bool {
        match way {
            Way::Equal => lane.0 == self.generation && lane.1 >= value,
            // A later generation: there was a reset after the sample had stopped.
            _ => lane >= (self.generation, value),
        }
    }

    /// What follows when it is known what a lane held.
    fn look(&self, model: &Model, lane: Mark, value: u8) -> Next {
        match self.is_covered(model.way, lane, value) {
            true => stored(model.way),
            false => Next::Section { expected: lane },
        }
    }

    /// The end of a section, or a locked exchange.
    fn exchange(&self, model: &Model, marks: [Mark; 2], value: u8, lane: &mut Mark) -> Next {
        let [expected, held] = marks;
        let stores = match model.way {
            Way::InSection => !self.is_covered(model.way, held, value),
            _ => held == expected,
        };
        if stores {
            *lane = (self.generation, value);
        }
        if stores || model.way == Way::InSection {
            stored(model.way)
        } else if model.reloads {
            Next::Lane
        } else {
            self.look(model, held, value)
        }
    }
}

/// What follows when nothing is left to store.
fn stored(way: Way) -> Next {
    match way {
        Way::Equal | Way::LexicographicRecheck => Next::Recheck,
        Way::Lexicographic | Way::InSection => Next::Done,
    }
}
