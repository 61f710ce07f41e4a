//! A toy protocol: threads that run short programs on three shared words.

use countersink_interleaver::{Place, Protocol, Step, World};

use Ins::*;

/// Instructions on a few shared words, with one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ins {
    /// The start of a section; its abort point is here.
    Section,
    /// Loads the word of the CPU.
    LoadLane,
    /// Adds one and stores to the word of the CPU it loaded from; ends a section.
    StoreLane,
    /// Loads a word.
    Load(usize),
    /// Adds one to what was loaded and stores it; ends a section.
    StoreNext(usize),
    /// Sets a word.
    Set(usize, u8),
    /// Takes a lock word, or waits.
    Lock(usize),
    /// Waits, stepping, until a word is set.
    SpinUntilSet(usize),
    /// Aborts the section on a CPU.
    Fence(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    pub(crate) code: &'static [Ins],
    pub(crate) pc: usize,
    pub(crate) section: Option<usize>,
    pub(crate) register: u8,
    pub(crate) lane: usize,
}

impl Frame {
    pub(crate) fn new(code: &'static [Ins]) -> Self {
        Frame {
            code,
            pc: 0,
            section: None,
            register: 0,
            lane: 0,
        }
    }
}

pub(crate) type Words = [u8; 3];
pub(crate) type Law = fn(&World<Words, Frame>) -> Result<(), String>;

pub(crate) struct Toy {
    pub(crate) threads: Vec<&'static [Ins]>,
    pub(crate) handler: Option<&'static [Ins]>,
    pub(crate) one_process: bool,
    pub(crate) each: Law,
    pub(crate) last: Law,
}

impl Toy {
    pub(crate) fn new(threads: &[&'static [Ins]]) -> Self {
        Toy {
            threads: threads.to_vec(),
            handler: None,
            one_process: true,
            each: |_| Ok(()),
            last: |_| Ok(()),
        }
    }
}

impl Protocol for Toy {
    type Memory = Words;
    type Frame = Frame;

    fn start(&self) -> (Words, Vec<Frame>) {
        let frames = self.threads.iter().map(|code| Frame::new(code));
        ([0; 3], frames.collect())
    }

    fn step(&self, at: Place, frame: &mut Frame, words: &mut Words) -> Step {
        let mut fence = None;
        match frame.code[frame.pc] {
            Section => frame.section = Some(frame.pc),
            LoadLane => {
                frame.lane = at.cpu;
                frame.register = words[at.cpu];
            }
            StoreLane => {
                words[frame.lane] = frame.register + 1;
                frame.section = None;
            }
            Load(word) => frame.register = words[word],
            StoreNext(word) => {
                words[word] = frame.register + 1;
                frame.section = None;
            }
            Set(word, value) => words[word] = value,
            Lock(word) if words[word] != 0 => return Step::Blocked,
            Lock(word) => words[word] = 1,
            SpinUntilSet(word) if words[word] == 0 => return Step::Ran,
            SpinUntilSet(_) => {}
            Fence(cpu) => fence = Some(cpu),
        }
        frame.pc += 1;
        match fence {
            _ if frame.pc == frame.code.len() => Step::Finished,
            Some(cpu) => Step::Fence(cpu),
            None => Step::Ran,
        }
    }

    fn in_section(&self, frame: &Frame) -> bool {
        frame.section.is_some()
    }

    fn abort(&self, frame: &mut Frame) {
        frame.pc = frame.section.take().unwrap_or(frame.pc);
        frame.register = 0;
        frame.lane = 0;
    }

    fn handler(&self, _thread: usize) -> Option<Frame> {
        self.handler.map(Frame::new)
    }

    fn same_process(&self, _one: usize, _other: usize) -> bool {
        self.one_process
    }

    fn label(&self, frame: &Frame) -> String {
        format!("{:?}", frame.code[frame.pc])
    }

    fn check(&self, world: &World<Words, Frame>) -> Result<(), String> {
        (self.each)(world)
    }

    fn check_final(&self, world: &World<Words, Frame>) -> Result<(), String> {
        (self.last)(world)
    }
}
