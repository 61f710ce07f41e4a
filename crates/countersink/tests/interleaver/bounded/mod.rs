//! Bounded counters: lanes that publish to an upper and a lower word. What a reader may conclude from these two
//! must hold in every state, whoever is killed.

mod ask;
mod kernel;
mod op;
mod tests;

use countersink_interleaver::{Life, Place, Protocol, Step, World};

use self::ask::{Setter, Summer, Syncer};
use self::op::{Op, Pc};
use crate::LANES;
use crate::add::{Lanes, Pair};

/// A mistake that the laws must catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// Both words move behind the lane.
    MovesAfter,
    /// Both words move before the lane.
    BehindFirst,
    /// The lane's two words are stored one after the other.
    TwoStores,
    /// The fast path looks at the value only.
    IgnoresPublished,
    /// A limited addition looks at the limit before its section.
    GuardOutside,
    /// Sync does not ask whether anybody is in the middle.
    SyncsAnyway,
    /// Sync asks at the end only, too late to know whether anybody was.
    SyncAsksBehind,
    /// Sync asks before it looks at the lanes, and not again.
    SyncAsksBeforeScan,
    /// Setting stores without comparing.
    SetsAnyway,
    /// A sum is what was seen, whatever the estimates say.
    SumAsSeen,
}

/// What the threads share; from `added` on for the laws.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Memory {
    /// Value and published.
    lanes: Lanes,
    upper: i8,
    lower: i8,
    /// How many of this process have begun, and how many have ended.
    begun: i8,
    ended: i8,
    added: i8,
    /// The least and the greatest sum since each thread began its operation.
    seen: Vec<Pair>,
    moved_early: bool,
    /// A limited addition that was committed although it had not been possible since it began: what it added, and the least that
    /// the sum was.
    impossible: Option<Pair>,
}

impl Memory {
    fn word(&self, upper: bool) -> i8 {
        if upper { self.upper } else { self.lower }
    }

    fn word_mut(&mut self, upper: bool) -> &mut i8 {
        if upper {
            &mut self.upper
        } else {
            &mut self.lower
        }
    }

    /// To be called with each commit.
    fn commit(&mut self, n: i8) {
        self.added += n;
        for seen in &mut self.seen {
            *seen = [seen[0].min(self.added), seen[1].max(self.added)];
        }
    }

    /// A thread begins an operation.
    fn begin(&mut self, thread: usize) {
        self.seen[thread] = [self.added; 2];
    }

    fn sum(&self, which: usize) -> i8 {
        self.lanes.iter().map(|lane| lane[which]).sum()
    }
}

/// What a thread does.
#[derive(Clone, Debug)]
enum Role {
    /// Operations one after the other, on CPU lanes or on the shared one only.
    Adds {
        ops: Vec<Op>,
        locked: bool,
    },
    Sets(i8),
    Sums,
    Syncs,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Frame {
    Adder { done: usize, pc: Pc },
    Setter(Setter),
    Summer(Summer),
    Syncer(Syncer),
}

#[derive(Clone, Debug)]
struct Rules {
    /// The widest batch less one.
    most: i8,
    /// Whether what is more than half a batch is published as it is. The rest of the protocol is explored without, as well: amounts
    /// here are small, and batches too.
    shifts: bool,
    flaw: Option<Flaw>,
}

impl Rules {
    fn slack(&self) -> i8 {
        self.most * LANES as i8
    }
}

#[derive(Clone, Debug)]
struct Model {
    roles: Vec<Role>,
    rules: Rules,
    /// What another process that was killed in the middle has left: an upper word that is too high.
    left: i8,
    /// Every lane has as much as it may without publishing.
    full: bool,
    /// What a handler adds, where there are signals.
    handler: Option<Op>,
    /// The sum must never be above this.
    limit: Option<i8>,
    /// Limited additions must have been possible at one moment each.
    possible: bool,
}

impl Model {
    fn new(most: i8, roles: Vec<Role>) -> Self {
        Model {
            roles,
            rules: Rules {
                most,
                shifts: false,
                flaw: None,
            },
            left: 0,
            full: false,
            handler: None,
            limit: None,
            possible: false,
        }
    }

    fn ops(&self, thread: usize) -> (&[Op], bool) {
        match &self.roles[thread] {
            Role::Adds { ops, locked } => (ops, *locked),
            _ => (&[], false),
        }
    }
}

fn adder() -> Frame {
    Frame::Adder {
        done: 0,
        pc: Pc::Fast,
    }
}

impl Protocol for Model {
    type Memory = Memory;
    type Frame = Frame;

    fn start(&self) -> (Memory, Vec<Frame>) {
        let full = if self.full {
            [self.rules.most, 0]
        } else {
            [0; 2]
        };
        let lanes: Lanes = [full; LANES];
        let added = lanes.iter().map(|lane| lane[0]).sum();
        let memory = Memory {
            lanes,
            upper: self.left,
            lower: 0,
            begun: 0,
            ended: 0,
            added,
            seen: vec![[added; 2]; self.roles.len()],
            moved_early: false,
            impossible: None,
        };
        let frame = |role: &Role| match role {
            Role::Adds { .. } => adder(),
            Role::Sets(value) => Frame::Setter(Setter::new(*value)),
            Role::Sums => Frame::Summer(Summer::new()),
            Role::Syncs => Frame::Syncer(Syncer::new()),
        };
        (memory, self.roles.iter().map(frame).collect())
    }

    fn step(&self, at: Place, frame: &mut Frame, memory: &mut Memory) -> Step {
        let finished = match frame {
            Frame::Adder { done, pc } => {
                let (ops, locked) = self.ops(at.thread);
                // A handler's frame is told from a thread's own by having nothing to do itself.
                let handler = self.handler.filter(|_| *done == usize::MAX);
                let Some(op) = handler.or_else(|| ops.get(*done).copied()) else {
                    return Step::Finished;
                };
                if *pc == Pc::Fast && handler.is_none() {
                    memory.begin(at.thread);
                }
                op.step(pc, &self.rules, at.cpu, locked, memory);
                if let Pc::Done { added } = *pc {
                    if handler.is_some() {
                        return Step::Finished;
                    }
                    let least = memory.seen[at.thread][0];
                    if added && op.limit.is_some_and(|limit| least + op.n > limit) {
                        memory.impossible = Some([op.n, least]);
                    }
                    *pc = Pc::Fast;
                    *done += 1;
                }
                *done == ops.len()
            }
            Frame::Setter(setter) => setter.step(&self.rules, memory),
            Frame::Summer(summer) => summer.step(&self.rules, at.thread, memory),
            Frame::Syncer(syncer) => syncer.step(&self.rules, memory),
        };
        if finished { Step::Finished } else { Step::Ran }
    }

    fn in_section(&self, frame: &Frame) -> bool {
        matches!(frame, Frame::Adder { pc, .. } if pc.in_section())
    }

    fn abort(&self, frame: &mut Frame) {
        if let Frame::Adder { pc, .. } = frame {
            pc.abort();
        }
    }

    fn handler(&self, thread: usize) -> Option<Frame> {
        let interrupted = matches!(self.roles[thread], Role::Adds { .. });
        self.handler.filter(|_| interrupted).map(|_| Frame::Adder {
            done: usize::MAX,
            pc: Pc::Fast,
        })
    }

    fn check(&self, world: &World<Memory, Frame>) -> Result<(), String> {
        let memory = &world.memory;
        let far = memory
            .lanes
            .iter()
            .find(|lane| (lane[0] - lane[1]).abs() > self.rules.most);
        if let Some(lane) = far {
            return Err(format!("lane: {lane:?} is further than a batch"));
        }
        let published = memory.sum(1);
        if memory.upper < published || memory.lower > published {
            return Err(format!(
                "range: {published} published, from {} to {}",
                memory.lower, memory.upper
            ));
        }
        let sum = memory.sum(0);
        if sum != memory.added {
            return Err(format!("lost: {sum} of {}", memory.added));
        }
        if self.limit.is_some_and(|limit| sum > limit) {
            return Err(format!("limit: the sum is {sum}"));
        }
        for (thread, world) in world.threads.iter().enumerate() {
            if let Frame::Summer(summer) = &world.frames[0] {
                summer.check(&self.rules, &memory.seen[thread])?;
            }
        }
        match memory.impossible {
            Some([n, least]) if self.possible => {
                Err(format!("impossible: {n} more than {least} at least"))
            }
            _ => Ok(()),
        }
    }

    fn check_final(&self, world: &World<Memory, Frame>) -> Result<(), String> {
        let memory = &world.memory;
        let synced = |thread: &countersink_interleaver::Thread<Frame>| matches!(&thread.frames[0], Frame::Syncer(syncer) if syncer.has_synced());
        let clean = self.left == 0 || world.threads.iter().any(synced);
        let words = [memory.upper, memory.lower];
        if !world.any_killed()
            && clean
            && (words != [memory.sum(1); 2] || memory.begun != memory.ended)
        {
            return Err(format!("rest: {words:?} with {} published", memory.sum(1)));
        }
        let sets = |frame: &Frame| matches!(frame, Frame::Setter(_));
        let only_sets = world.threads.iter().all(|thread| sets(&thread.frames[0]));
        let all_set = world
            .threads
            .iter()
            .all(|thread| thread.life == Life::Finished);
        if only_sets && all_set {
            let values: Vec<i8> = self
                .roles
                .iter()
                .filter_map(|role| match role {
                    Role::Sets(value) => Some(*value),
                    _ => None,
                })
                .collect();
            if !values.contains(&memory.sum(0)) {
                return Err(format!("set: {} of {values:?}", memory.sum(0)));
            }
        }
        Ok(())
    }
}
