//! The longest time of a span. Each lane holds a generation and a value, the bias lane the present
//! generation and the tick when it began. A reset only makes a new generation, so that no one but
//! a CPU's sections writes the CPU's lane; values of other generations are void.

mod reader;
mod recorder;
mod resetter;
mod tests;

use countersink_interleaver::{Explorer, Life, Place, Protocol, Report, Step, World};

use self::reader::Reader;
use self::recorder::Recorder;
use self::resetter::Resetter;
use crate::{CPUS, LANES, breaks, holds};

/// A generation and a value; in the bias lane, a generation and a tick.
type Mark = (u8, u8);

/// How a recorder stores its sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Looks at a lane's pair. Of the same generation and large enough: stores nothing. Else
    /// exchanges it, in a section, for its own, and after a mismatch goes on with the pair that was
    /// there. At the end it looks at the generation again, and repeats all if there is a new one.
    Equal,
    /// The same, but stores nothing also where the lane's generation is a later one.
    LexicographicRecheck,
    /// The same without the look at the end.
    Lexicographic,
    /// Loads, compares and stores in one section: there is nothing to mismatch.
    InSection,
}

/// When a resetter looks at the lanes, to say what it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Nothing,
    BeforeReset,
    AfterReset,
}

/// A mistake that the laws must catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// A recorder does not look at when the generation began.
    NoTick,
    /// The quick check loads the lane's value before its generation.
    QuickValueFirst,
    /// A resetter takes its tick before it looks at the present generation.
    TickBeforeGeneration,
    /// A resetter zeroes the lanes when it has made a new generation.
    ZeroesLanes,
    /// A reader loads a lane's value before its generation.
    ReaderValueFirst,
    /// A reader looks at the generation once.
    NoSecondLook,
}

/// What the threads share; from `stopped` on it is for the laws.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Memory {
    lanes: [Mark; LANES],
    bias: Mark,
    clock: u8,
    /// When the sample of each thread stopped.
    stopped: [u8; 3],
    /// The latest tick of a reset that was made.
    reset: u8,
    /// The largest sample that stopped after the last reset was made, and is recorded.
    floor: u8,
    foreign_store: bool,
}

impl Memory {
    /// The clock as a resetter reads it: it goes on then, and only then. All that is asked of ticks
    /// is whether a sample stopped before a reset's. Steps between two readings of one and the same
    /// tick could as well have come in the other order, so that these are explored too.
    fn tick(&mut self) -> u8 {
        self.clock += 1;
        self.clock
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Frame {
    Recorder(Recorder),
    Resetter(Resetter),
    Reader(Reader),
}

#[derive(Clone, Debug)]
struct Model {
    /// What each recorder measured; all different, not 0.
    values: Vec<u8>,
    resetters: usize,
    readers: usize,
    way: Way,
    /// Whether recorders look first whether there is anything to store, without pairs.
    quick: bool,
    /// Whether a retry after a mismatch loads the CPU's lane, and does not go on with the pair that
    /// was there.
    reloads: bool,
    /// Whether every section is aborted, as by a debugger that goes step by step.
    stepped: bool,
    takes: Takes,
    /// Whether what is taken must have all that was recorded before the reset, not only before
    /// the resetter began.
    exact: bool,
    /// Whether a reader loads a lane's two words at once; else generation first.
    pairs: bool,
    /// The lanes at the start, of generation 1.
    start: [Mark; LANES],
    /// Whether only sections may store to a CPU's lane.
    owned: bool,
    flaw: Option<Flaw>,
}

impl Model {
    fn new(values: &[u8], resetters: usize, readers: usize) -> Self {
        Model {
            values: values.to_vec(),
            resetters,
            readers,
            way: Way::Lexicographic,
            quick: false,
            reloads: false,
            stepped: false,
            takes: Takes::Nothing,
            exact: false,
            pairs: true,
            start: [(0, 0); LANES],
            owned: true,
            flaw: None,
        }
    }

    fn with(mut self, flaw: Flaw) -> Self {
        self.flaw = Some(flaw);
        self
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// The laws of what is shown: by the lanes at one moment, or by a reader.
    fn check_shown(&self, shown: u8, floor: u8, reset: u8, memory: &Memory) -> Result<(), String> {
        if shown < floor {
            return Err(format!(
                "missing: {floor} is recorded, and {shown} is shown"
            ));
        }
        let sample = self.values.iter().position(|&value| value == shown);
        match sample.map(|sample| memory.stopped[sample]) {
            Some(tick) if tick < reset => Err(format!(
                "stale: {shown}, stopped at {tick}, is shown after a reset at {reset}"
            )),
            None if shown != 0 && self.start.iter().all(|lane| lane.1 != shown) => {
                Err(format!("no such sample: {shown}"))
            }
            _ => Ok(()),
        }
    }

    fn explorer(&self, kills: u8) -> Explorer {
        Explorer::new(CPUS).kills(kills)
    }

    #[track_caller]
    fn holds(&self, name: &str, kills: u8) -> Report {
        let (samples, resets, readers) = (self.values.len(), self.resetters, self.readers);
        let setting =
            format!("{samples} samples, {resets} resets, {readers} readers, {kills} kills");
        let name = format!("{name} ({setting})");
        holds(&name, &self.explorer(kills), self)
    }

    #[track_caller]
    fn breaks(&self, name: &str, law: &str) {
        breaks(name, &self.explorer(0), self, law);
    }
}

impl Protocol for Model {
    type Memory = Memory;
    type Frame = Frame;

    fn start(&self) -> (Memory, Vec<Frame>) {
        let memory = Memory {
            lanes: self.start,
            bias: (1, 0),
            clock: 0,
            stopped: [0; 3],
            reset: 0,
            floor: 0,
            foreign_store: false,
        };
        let recorder = |_: &u8| Frame::Recorder(Recorder::new());
        let mut frames: Vec<Frame> = self.values.iter().map(recorder).collect();
        frames.extend((0..self.resetters).map(|_| Frame::Resetter(Resetter::new(self))));
        frames.extend((0..self.readers).map(|_| Frame::Reader(Reader::new())));
        (memory, frames)
    }

    fn step(&self, at: Place, frame: &mut Frame, memory: &mut Memory) -> Step {
        let finished = match frame {
            Frame::Recorder(recorder) => recorder.step(self, at, memory),
            Frame::Resetter(resetter) => resetter.step(self, memory),
            Frame::Reader(reader) => reader.step(self, memory),
        };
        match finished {
            true => Step::Finished,
            false => Step::Ran,
        }
    }

    fn in_section(&self, frame: &Frame) -> bool {
        matches!(frame, Frame::Recorder(recorder) if recorder.in_section())
    }

    fn abort(&self, frame: &mut Frame) {
        if let Frame::Recorder(recorder) = frame {
            recorder.abort();
        }
    }

    fn check(&self, world: &World<Memory, Frame>) -> Result<(), String> {
        let memory = &world.memory;
        if memory.foreign_store && self.owned {
            return Err("ownership: a store to a CPU's lane outside of its sections".into());
        }
        let present = memory.lanes.iter().filter(|lane| lane.0 == memory.bias.0);
        let shown = present.map(|lane| lane.1).max().unwrap_or(0);
        self.check_shown(shown, memory.floor, memory.reset, memory)?;
        for thread in world.threads.iter().filter(|t| t.life == Life::Finished) {
            match &thread.frames[0] {
                Frame::Reader(reader) => reader.check(self, memory)?,
                Frame::Resetter(resetter) => resetter.check()?,
                Frame::Recorder(_) => {}
            }
        }
        Ok(())
    }
}
