//! The protocol that is explored: threads that run operations, sweep or raise the guard, over the
//! lanes of a few CPUs and the shared one. Processes that share the lanes are threads here.

use std::cell::RefCell;
use std::collections::HashMap;

use countersink_interleaver::{Explorer, Failure, Life, Place, Protocol, Report, Step, World};
use countersink_percpu::spec::{Op, Outcome};

use crate::guard::Raise;
use crate::laws::{Lanes, Sequence, explained};
use crate::operation::{Attempt, Flaw, Pc, Rules};
use crate::sweep::{Passes, Sweep};

/// What the threads share, and what their callers were told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Memory {
    /// One lane for each CPU, then the shared one.
    pub(crate) lanes: Lanes,
    /// The guard word.
    pub(crate) guard: u64,
    /// What each thread's own operations returned, in order.
    told: Vec<Sequence>,
    /// What the operations of handlers returned.
    told_handlers: Sequence,
}

/// What a thread does.
#[derive(Clone, Debug)]
pub(crate) enum Role {
    /// Runs operations, registered for rseq.
    Registered(Vec<Op>),
    /// Runs operations, not registered.
    Unregistered(Vec<Op>),
    /// Sweeps the lanes once.
    Sweeper(Passes),
    /// Raises the guard and fences the first so many CPUs.
    Raiser { fences: usize },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Frame {
    Operation(Attempt),
    Sweep(Sweep),
    Raise(Raise),
}

/// One setting of the protocol.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) cpus: usize,
    pub(crate) threads: Vec<Role>,
    /// What a signal handler does, on any thread.
    pub(crate) handler: Option<Op>,
    /// Both words of every lane at the start.
    pub(crate) start: [u64; 2],
    pub(crate) max_aborts: u8,
    /// Whether fences reach.
    pub(crate) one_process: bool,
    pub(crate) flaw: Option<Flaw>,
    known: RefCell<HashMap<(Lanes, Vec<Sequence>), bool>>,
}

impl Model {
    /// Lanes of zeros, no handler, one restart, no flaw.
    pub(crate) fn new(cpus: usize, threads: Vec<Role>) -> Self {
        Model {
            cpus,
            threads,
            handler: None,
            start: [0; 2],
            max_aborts: 2,
            one_process: true,
            flaw: None,
            known: RefCell::default(),
        }
    }

    /// Explores, also for cycles: restarts are bounded. Prints the size.
    pub(crate) fn explore(&self, name: &str, signals: u8, kills: u8) -> Result<Report, Failure> {
        let explorer = Explorer::new(self.cpus).signals(signals).kills(kills);
        let result = explorer.forbid_cycles().explore(self);
        let (cpus, threads) = (self.cpus, self.threads.len());
        let setting =
            format!("{cpus} CPUs, {threads} threads, {signals} signal(s), {kills} kill(s)");
        match &result {
            Ok(report) => println!("{name} ({setting}): {report}"),
            Err(failure) => println!("{name} ({setting}): {failure}"),
        }
        result
    }

    fn lanes_at_start(&self) -> Lanes {
        vec![self.start; self.cpus + 1]
    }

    fn rules(&self) -> Rules {
        Rules {
            shared: self.cpus,
            max_aborts: self.max_aborts,
            flaw: self.flaw,
        }
    }

    /// An operation as this thread runs it.
    fn attempt(&self, thread: usize, op: Op) -> Attempt {
        let registered = !matches!(self.threads[thread], Role::Unregistered(_));
        Attempt::new(op, registered, &self.rules())
    }

    /// A thread's operation by its place in the program.
    fn op(&self, thread: usize, place: usize) -> Option<Op> {
        match &self.threads[thread] {
            Role::Registered(ops) | Role::Unregistered(ops) => ops.get(place).copied(),
            Role::Sweeper(_) | Role::Raiser { .. } => None,
        }
    }

    /// Notes what the caller was told, and goes on to the thread's next operation.
    fn returned(
        &self,
        thread: usize,
        attempt: &mut Attempt,
        outcome: Outcome,
        memory: &mut Memory,
    ) -> Step {
        let told = (attempt.op, Some(outcome));
        if attempt.handler {
            memory.told_handlers.push(told);
            return Step::Finished;
        }
        memory.told[thread].push(told);
        match self.op(thread, memory.told[thread].len()) {
            Some(next) => {
                *attempt = self.attempt(thread, next);
                Step::Ran
            }
            None => Step::Finished,
        }
    }

    /// Law 1.
    fn check_explained(&self, world: &World<Memory, Frame>) -> Result<(), String> {
        let memory = &world.memory;
        let mut sequences = memory.told.clone();
        sequences.extend(memory.told_handlers.iter().map(|told| vec![*told]));
        for (own, thread) in world.threads.iter().enumerate() {
            for attempt in operations(thread.frames.as_slice()) {
                let untold = (attempt.op, None);
                match attempt.handler {
                    true => sequences.push(vec![untold]),
                    false if thread.life != Life::Finished => sequences[own].push(untold),
                    false => {}
                }
            }
        }
        let key = (memory.lanes.clone(), sequences);
        let mut known = self.known.borrow_mut();
        let (start, end) = (self.lanes_at_start(), &memory.lanes);
        let yes = *known
            .entry(key.clone())
            .or_insert_with(|| explained(&start, end, &key.1));
        match yes {
            true => Ok(()),
            false => Err(format!("law 1: {end:?} is not explained by {:?}", key.1)),
        }
    }
}

fn operations(frames: &[Frame]) -> impl Iterator<Item = &Attempt> {
    frames.iter().filter_map(|frame| match frame {
        Frame::Operation(attempt) => Some(attempt),
        Frame::Sweep(_) | Frame::Raise(_) => None,
    })
}

impl Protocol for Model {
    type Memory = Memory;
    type Frame = Frame;

    fn start(&self) -> (Memory, Vec<Frame>) {
        let memory = Memory {
            lanes: self.lanes_at_start(),
            guard: 0,
            told: vec![Vec::new(); self.threads.len()],
            told_handlers: Vec::new(),
        };
        let frame = |(thread, role): (usize, &Role)| match role {
            Role::Sweeper(passes) => Frame::Sweep(Sweep::new(passes)),
            Role::Raiser { fences } => Frame::Raise(Raise::new(*fences)),
            Role::Registered(ops) | Role::Unregistered(ops) => {
                Frame::Operation(self.attempt(thread, ops[0]))
            }
        };
        (memory, self.threads.iter().enumerate().map(frame).collect())
    }

    fn step(&self, at: Place, frame: &mut Frame, memory: &mut Memory) -> Step {
        match frame {
            Frame::Sweep(sweep) => match sweep.step(memory) {
                true => Step::Finished,
                false => Step::Ran,
            },
            Frame::Raise(raise) => raise.step(memory),
            Frame::Operation(attempt) => match attempt.step(&self.rules(), at.cpu, memory) {
                Some(outcome) => self.returned(at.thread, attempt, outcome, memory),
                None => Step::Ran,
            },
        }
    }

    fn in_section(&self, frame: &Frame) -> bool {
        matches!(frame, Frame::Operation(attempt) if attempt.in_section())
    }

    fn abort(&self, frame: &mut Frame) {
        if let Frame::Operation(attempt) = frame {
            attempt.abort(&self.rules());
        }
    }

    fn handler(&self, thread: usize) -> Option<Frame> {
        let mut attempt = self.attempt(thread, self.handler?);
        attempt.handler = true;
        Some(Frame::Operation(attempt))
    }

    fn same_process(&self, _one: usize, _other: usize) -> bool {
        self.one_process
    }

    fn label(&self, frame: &Frame) -> String {
        match frame {
            Frame::Operation(attempt) => format!("{attempt}"),
            Frame::Sweep(sweep) => format!("{sweep:?}"),
            Frame::Raise(raise) => format!("{raise:?}"),
        }
    }

    fn check(&self, world: &World<Memory, Frame>) -> Result<(), String> {
        self.check_explained(world)?;
        for thread in &world.threads {
            for attempt in operations(&thread.frames) {
                if attempt.pc == Pc::Return && attempt.result() == Some((Outcome::Stored(true), 1))
                {
                    return Err("guard: was raised before the section began, and added".into());
                }
            }
            match &thread.frames[0] {
                Frame::Sweep(sweep) if thread.life == Life::Finished => sweep.check()?,
                Frame::Raise(raise) => raise.check(&world.memory)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn check_final(&self, world: &World<Memory, Frame>) -> Result<(), String> {
        for thread in &world.threads {
            if let Frame::Raise(raise) = &thread.frames[0]
                && !world.any_killed()
            {
                raise.check_final(&world.memory)?;
            }
        }
        Ok(())
    }
}
