//! The micro-program of one operation: each step is one load, one store or one locked instruction,
//! as in the mechanism built on rseq. And the ways to get it wrong.

use std::fmt;

use countersink_percpu::spec::{Op, Outcome};

use crate::model::Memory;

/// A mistake in the micro-program, which the laws must catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Loads the words before the section begins, and commits what follows from them inside.
    LoadsWordsBefore,
    /// Loads the CPU number before the section begins.
    LoadsCpuBefore,
    /// Loads the guard before the section begins.
    LoadsGuardBefore,
    /// Commits a pair by two stores.
    SplitsCommit,
    /// Has an instruction after the commit inside the section.
    StepAfterCommit,
    /// Restarts without loading the CPU number again.
    RestartKeepsLane,
    /// Tells the caller of an aborted exchange that another value was there.
    AbortIsMismatch,
    /// Restarts as often as it is aborted.
    RestartsForever,
    /// Loads from the shared lane and stores to it without a lock.
    UnlockedOnShared,
    /// Asks for the CPU number, and works on that lane with a locked instruction, where it should
    /// use the shared lane. By then it may be on another CPU. (Both in one step would be right:
    /// it would have taken the CPU from any section on that lane. No instruction does both.)
    LockedOnCpuLane,
    /// Tests the guard before its locked add on the shared lane, and never after.
    SharedTestsFirst,
}

/// What an operation does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pc {
    /// Only with a flaw: loads what belongs inside the section.
    LoadEarly,
    /// Enters the section: stores its descriptor's address.
    Enter,
    /// Loads the CPU number. From here to the commit the operation is in its section.
    LoadCpu,
    /// Loads the guard word.
    LoadGuard,
    /// Loads the lane's first word.
    LoadFirst,
    /// Loads the lane's second word.
    LoadSecond,
    /// Decides and stores, or leaves without a store: the section's last instruction.
    Commit,
    /// Only with a flaw: stores the second word.
    CommitSecond,
    /// Only with a flaw: does something else.
    AfterCommit,
    /// Does it all on the shared lane by one locked instruction. A guarded add only adds here.
    Locked,
    /// Only with a flaw: stores to the shared lane what follows from an unlocked load.
    UnlockedStore,
    /// Only with a flaw: does it all by one locked instruction, on the lane that was chosen or
    /// as the guard that was loaded one step before allows.
    LockedLate,
    /// Loads the guard after a locked guarded add.
    LockedGuard,
    /// Takes a locked guarded add back, on the same lane.
    BackOut,
    /// Returns the outcome to the caller.
    Return,
}

/// What holds for all attempts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The number of the shared lane: the CPU lanes come before it.
    pub(crate) shared: usize,
    /// After so many aborts in a row the operation is done on the shared lane.
    pub(crate) max_aborts: u8,
    /// What is wrong with the program, if anything.
    pub(crate) flaw: Option<Flaw>,
}

/// An operation in progress: program counter and registers. Registers that are no longer needed
/// are cleared, so that states that do not differ are one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Attempt {
    pub(crate) op: Op,
    pub(crate) pc: Pc,
    /// Whether a signal handler runs it.
    pub(crate) handler: bool,
    aborts: u8,
    lane: usize,
    held: [u64; 2],
    guard: u64,
    outcome: Option<Outcome>,
    /// For the laws only: the guard when this section began.
    guard_at_enter: u64,
}

impl Attempt {
    /// An operation of a thread that is registered for rseq, or is not and so goes to the shared
    /// lane from the start.
    pub(crate) fn new(op: Op, registered: bool, rules: &Rules) -> Self {
        let pc = match rules.flaw {
            _ if !registered => Pc::Locked,
            Some(Flaw::LoadsWordsBefore | Flaw::LoadsCpuBefore | Flaw::LoadsGuardBefore) => {
                Pc::LoadEarly
            }
            _ => Pc::Enter,
        };
        Attempt {
            op,
            pc,
            handler: false,
            aborts: 0,
            lane: 0,
            held: [0; 2],
            guard: 0,
            outcome: None,
            guard_at_enter: 0,
        }
    }

    pub(crate) fn in_section(&self) -> bool {
        match self.pc {
            Pc::LoadCpu | Pc::LoadGuard | Pc::LoadFirst | Pc::LoadSecond => true,
            Pc::Commit | Pc::CommitSecond | Pc::AfterCommit => true,
            Pc::LoadEarly | Pc::Enter | Pc::Return => false,
            Pc::Locked | Pc::UnlockedStore | Pc::LockedLate => false,
            Pc::LockedGuard | Pc::BackOut => false,
        }
    }

    /// The abort handler: starts again, or goes to the shared lane.
    pub(crate) fn abort(&mut self, rules: &Rules) {
        let mut again = Attempt::new(self.op, true, rules);
        again.handler = self.handler;
        again.aborts = self.aborts + 1;
        match rules.flaw {
            Some(Flaw::RestartsForever) => again.aborts = 0,
            Some(Flaw::RestartKeepsLane) => again.lane = self.lane,
            Some(Flaw::AbortIsMismatch) => again.finish(Outcome::Mismatch(self.held)),
            _ => {}
        }
        if again.aborts >= rules.max_aborts && again.pc != Pc::Return {
            again.pc = Pc::Locked;
            again.aborts = 0;
            again.lane = 0;
        }
        *self = again;
    }

    /// Runs one step on a CPU. Answers with the outcome once the caller has it.
    pub(crate) fn step(
        &mut self,
        rules: &Rules,
        cpu: usize,
        memory: &mut Memory,
    ) -> Option<Outcome> {
        match self.pc {
            Pc::LoadEarly => self.load_early(rules, cpu, memory),
            Pc::Enter => {
                self.guard_at_enter = memory.guard;
                self.pc = self.next_load(rules);
            }
            Pc::LoadCpu | Pc::LoadGuard | Pc::LoadFirst | Pc::LoadSecond => {
                match self.pc {
                    Pc::LoadCpu => self.lane = cpu,
                    Pc::LoadGuard => self.guard = memory.guard,
                    Pc::LoadFirst => self.held[0] = memory.lanes[self.lane][0],
                    _ => self.held[1] = memory.lanes[self.lane][1],
                }
                self.pc = self.next_load(rules);
            }
            Pc::Commit => self.commit(rules, memory),
            Pc::CommitSecond => {
                let decision = self.op.decide(self.held, self.guard);
                if let Some(words) = decision.commit {
                    memory.lanes[self.lane][1] = words[1];
                }
                self.finish(decision.outcome);
            }
            Pc::AfterCommit => self.finish(self.op.decide(self.held, self.guard).outcome),
            Pc::Locked => self.locked(rules, cpu, memory),
            Pc::UnlockedStore => {
                let outcome = self.decide_and_store(memory);
                self.finish(outcome);
            }
            Pc::LockedLate => {
                let outcome = self.load_and_store(memory);
                self.finish(outcome);
            }
            Pc::LockedGuard if memory.guard == 0 => self.finish(Outcome::Stored(true)),
            Pc::LockedGuard => self.pc = Pc::BackOut,
            Pc::BackOut => {
                if let Op::AddUnless(n) = self.op {
                    let word = &mut memory.lanes[self.lane][0];
                    *word = word.wrapping_sub(n);
                }
                self.finish(Outcome::Stored(false));
            }
            Pc::Return => return self.outcome,
        }
        None
    }

    /// The outcome, if it is known and only has to be returned; and the guard when the section
    /// began, 0 for what was done on the shared lane.
    pub(crate) fn result(&self) -> Option<(Outcome, u64)> {
        Some((self.outcome?, self.guard_at_enter))
    }

    /// The loads of the section in their order, those left out that are not needed.
    fn next_load(&self, rules: &Rules) -> Pc {
        let flaw = |flaw| rules.flaw == Some(flaw);
        let keeps_lane = flaw(Flaw::RestartKeepsLane) && self.aborts > 0;
        let words = !flaw(Flaw::LoadsWordsBefore);
        let order = [
            (Pc::LoadCpu, !flaw(Flaw::LoadsCpuBefore) && !keeps_lane),
            (
                Pc::LoadGuard,
                self.op.has_guard() && !flaw(Flaw::LoadsGuardBefore),
            ),
            (Pc::LoadFirst, words),
            (Pc::LoadSecond, words && self.op.width() == 2),
        ];
        let done = order.iter().position(|&(pc, _)| pc == self.pc);
        let rest = &order[done.map_or(0, |at| at + 1)..];
        let needed = rest.iter().find(|(_, needed)| *needed);
        needed.map_or(Pc::Commit, |&(pc, _)| pc)
    }

    fn load_early(&mut self, rules: &Rules, cpu: usize, memory: &Memory) {
        match rules.flaw {
            Some(Flaw::LoadsCpuBefore) => self.lane = cpu,
            Some(Flaw::LoadsGuardBefore) => self.guard = memory.guard,
            _ => self.held = memory.lanes[cpu],
        }
        self.pc = Pc::Enter;
    }

    fn commit(&mut self, rules: &Rules, memory: &mut Memory) {
        if rules.flaw == Some(Flaw::SplitsCommit) && self.op.width() == 2 {
            if let Some(words) = self.op.decide(self.held, self.guard).commit {
                memory.lanes[self.lane][0] = words[0];
            }
            self.pc = Pc::CommitSecond;
            return;
        }
        let outcome = self.decide_and_store(memory);
        if rules.flaw == Some(Flaw::StepAfterCommit) {
            self.pc = Pc::AfterCommit;
        } else {
            self.finish(outcome);
        }
    }

    fn locked(&mut self, rules: &Rules, cpu: usize, memory: &mut Memory) {
        self.lane = rules.shared;
        match rules.flaw {
            Some(Flaw::UnlockedOnShared) => {
                self.held = memory.lanes[self.lane];
                self.pc = Pc::UnlockedStore;
            }
            Some(Flaw::LockedOnCpuLane) => {
                self.lane = cpu;
                self.pc = Pc::LockedLate;
            }
            Some(Flaw::SharedTestsFirst) => {
                self.guard = memory.guard;
                self.pc = Pc::LockedLate;
            }
            _ if self.op.has_guard() => {
                self.load_and_store(memory);
                self.held = [0; 2];
                self.pc = Pc::LockedGuard;
            }
            _ => {
                let outcome = self.load_and_store(memory);
                self.finish(outcome);
            }
        }
    }

    /// A locked instruction on the chosen lane.
    fn load_and_store(&mut self, memory: &mut Memory) -> Outcome {
        self.held = memory.lanes[self.lane];
        self.decide_and_store(memory)
    }

    /// Steps 3 and 4 of the specification, on the words and the guard that were loaded.
    fn decide_and_store(&self, memory: &mut Memory) -> Outcome {
        let decision = self.op.decide(self.held, self.guard);
        if let Some(words) = decision.commit {
            let width = self.op.width();
            memory.lanes[self.lane][..width].copy_from_slice(&words[..width]);
        }
        decision.outcome
    }

    fn finish(&mut self, outcome: Outcome) {
        self.pc = Pc::Return;
        self.outcome = Some(outcome);
        self.aborts = 0;
        self.lane = 0;
        self.held = [0; 2];
        self.guard = 0;
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.op, self.pc)?;
        match self.pc {
            Pc::LoadFirst | Pc::LoadSecond => write!(f, " of lane {}", self.lane),
            Pc::Commit | Pc::CommitSecond | Pc::UnlockedStore => {
                let Attempt {
                    lane, held, guard, ..
                } = self;
                write!(f, " to lane {lane}, held {held:?}, guard {guard}")
            }
            Pc::Return => write!(f, " {:?}", self.outcome),
            _ => Ok(()),
        }
    }
}
