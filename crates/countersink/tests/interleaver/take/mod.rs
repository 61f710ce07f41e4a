//! Taking sums: a taker stores minus the lanes' sum to the bias words, if these are still what they
//! were before it looked at the lanes. Takers are of different processes, so any may be killed.

mod reader;
mod taker;
mod tests;

use countersink_interleaver::{Life, Place, Protocol, Step, World};

use self::reader::Reader;
use self::taker::Taker;
use crate::add::{Add, Lanes, Pair, minus, plus, sum};

/// A mistake that the laws must catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// A taker looks at the lanes before it looks at the bias.
    LanesBeforeBias,
    /// A reader looks at the bias once.
    NoSecondLook,
    /// A taker exchanges the lanes' words with 0.
    ZeroesLanes,
    /// A taker exchanges the bias words of a pair one after the other.
    TwoExchanges,
}

/// What the threads share; all but the first two is for the laws.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Memory {
    lanes: Lanes,
    bias: Pair,
    /// By adds that were committed.
    added: Pair,
    /// By takes that were.
    taken: Pair,
    /// What callers of take were told.
    reported: Pair,
    /// While a reader reads: the first words that it could have read, a bit each.
    held: Option<u64>,
}

impl Memory {
    fn truth(&self) -> Pair {
        minus(self.added, self.taken)
    }

    /// To be called when the truth has changed.
    fn note(&mut self) {
        let now = 1 << self.truth()[0].clamp(0, 63);
        self.held = self.held.map(|held| held | now);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Frame {
    Adder { done: usize, add: Add },
    Taker(Taker),
    Reader(Reader),
}

#[derive(Clone, Debug)]
struct Model {
    /// How much each adder adds, one after the other, to the first word; three times as much to
    /// the second.
    adders: Vec<Vec<i8>>,
    takers: usize,
    readers: usize,
    /// Whether a reader loads a lane's two words at once. `pread` does not.
    pairs: bool,
    /// Whether the two words that it gets must belong together.
    must_agree: bool,
    /// Whether a value must be one that there was, not only lie between two that there were.
    must_have_been: bool,
    flaw: Option<Flaw>,
}

impl Model {
    fn new(adders: &[&[i8]], takers: usize, readers: usize) -> Self {
        Model {
            adders: adders.iter().map(|adds| adds.to_vec()).collect(),
            takers,
            readers,
            pairs: true,
            must_agree: true,
            must_have_been: false,
            flaw: None,
        }
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }
}

impl Protocol for Model {
    type Memory = Memory;
    type Frame = Frame;

    fn start(&self) -> (Memory, Vec<Frame>) {
        let memory = Memory {
            lanes: Lanes::default(),
            bias: [0; 2],
            added: [0; 2],
            taken: [0; 2],
            reported: [0; 2],
            held: None,
        };
        let adder = |_: &Vec<i8>| Frame::Adder {
            done: 0,
            add: Add::Load,
        };
        let mut frames: Vec<Frame> = self.adders.iter().map(adder).collect();
        frames.extend((0..self.takers).map(|_| Frame::Taker(Taker::new(self))));
        frames.extend((0..self.readers).map(|_| Frame::Reader(Reader::new())));
        (memory, frames)
    }

    fn step(&self, at: Place, frame: &mut Frame, memory: &mut Memory) -> Step {
        let finished = match frame {
            Frame::Taker(taker) => taker.step(self, memory),
            Frame::Reader(reader) => reader.step(self, memory),
            Frame::Adder { done, add } => {
                let adds = &self.adders[at.thread];
                let n = [adds[*done], 3 * adds[*done]];
                if add.step(n, at.cpu, &mut memory.lanes) {
                    memory.added = plus(memory.added, n);
                    memory.note();
                    *done += 1;
                }
                *done == adds.len()
            }
        };
        match finished {
            true => Step::Finished,
            false => Step::Ran,
        }
    }

    fn in_section(&self, frame: &Frame) -> bool {
        matches!(frame, Frame::Adder { add, .. } if add.in_section())
    }

    fn abort(&self, frame: &mut Frame) {
        if let Frame::Adder { add, .. } = frame {
            add.abort();
        }
    }

    fn check(&self, world: &World<Memory, Frame>) -> Result<(), String> {
        let memory = &world.memory;
        let rest = plus(sum(&memory.lanes), memory.bias);
        if rest != memory.truth() {
            let truth = memory.truth();
            return Err(format!("lost: {rest:?} are there, and should be {truth:?}"));
        }
        for thread in &world.threads {
            match &thread.frames[0] {
                Frame::Taker(taker) => taker.check()?,
                Frame::Reader(reader) => reader.check()?,
                Frame::Adder { .. } => {}
            }
        }
        Ok(())
    }

    fn check_final(&self, world: &World<Memory, Frame>) -> Result<(), String> {
        let memory = &world.memory;
        let mut all = plus(sum(&memory.lanes), memory.bias);
        all = plus(all, memory.reported);
        // What a taker took and was killed before it could tell.
        for thread in world.threads.iter().filter(|t| t.life == Life::Killed) {
            if let Frame::Taker(taker) = &thread.frames[0] {
                all = plus(all, taker.unreported());
            }
        }
        match all == memory.added {
            true => Ok(()),
            false => Err(format!("lost: {all:?} of {:?}", memory.added)),
        }
    }
}
