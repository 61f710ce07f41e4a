//! The micro-programs: a user of a metric from registration to its drop, a reader, and a reset from
//! outside. Each step is one access to memory.

use countersink_interleaver::Step;

use super::memory::{Head, Life, Memory, State};
use super::{Flaw, Rules};

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// Registers a name and counts once. Then it keeps its handle, or drops it.
    User { name: u8, drops: bool },
    /// Reads one entry.
    Reader { entry: u8 },
    /// Takes the counts of an entry that has the name. Perhaps it joins for that long.
    Resetter { name: u8, entry: u8, joins: bool },
}

/// A scan of the group: for an entry of the name, or for another than mine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Scan {
    /// My entry + 1, or 0.
    pub(super) mine: u8,
    /// The slot that it is in.
    pub(super) place: u8,
    /// The next place: a slot, or after those an entry.
    pub(super) at: u8,
    /// The first slot that was empty + 1, or 0.
    pub(super) room: u8,
    /// How many entries there are, where all are looked at.
    pub(super) used: u8,
}

/// What a thread does next. `then` is an entry + 1 that it holds and goes on with, or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pc {
    Slot(Scan),
    Used(Scan),
    Look(Scan, u8),
    Name(Scan, u8, Life),
    Join(Scan, u8, Life),
    // A new entry.
    Head,
    Next(Head),
    Pop(Head, u8),
    Reserve,
    ReserveExchange(u8),
    TakeBias(u8),
    TakeLane {
        entry: u8,
        bias: i8,
    },
    TakeExchange {
        entry: u8,
        bias: i8,
        lane: i8,
    },
    Begin(u8),
    Write(u8),
    Publish(u8),
    Insert {
        entry: u8,
        at: u8,
    },
    /// The same, into a slot that was found empty.
    Fill {
        entry: u8,
        slot: u8,
    },
    // With a handle.
    Count(u8),
    Kept(u8),
    Drop {
        entry: u8,
        then: u8,
    },
    DropExchange {
        entry: u8,
        life: Life,
        then: u8,
    },
    Clear {
        entry: u8,
        at: u8,
        then: u8,
    },
    Push {
        entry: u8,
        then: u8,
    },
    Link {
        entry: u8,
        head: Head,
        then: u8,
    },
    PushExchange {
        entry: u8,
        head: Head,
        then: u8,
    },
    Gone,
    Refused,
    // A reader.
    ReadLife,
    ReadName(Life),
    ReadBias(Life, u8),
    ReadLane(Life, u8, i8),
    ReadAgain(Life, u8, i8),
    Read {
        name: u8,
        value: i8,
    },
    Void,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Task {
    pub(super) role: Role,
    pub(super) pc: Pc,
    /// The slot + 1 that was found empty while there was no entry, or 0.
    pub(super) room: u8,
}

impl Task {
    pub(super) fn new(role: Role) -> Self {
        let pc = match role {
            Role::User { .. } => Pc::Slot(Scan::default()),
            Role::Reader { .. } => Pc::ReadLife,
            Role::Resetter { entry, .. } => Pc::Look(Scan::default(), entry),
        };
        Task { role, pc, room: 0 }
    }

    pub(super) fn name(&self) -> u8 {
        match self.role {
            Role::User { name, .. } | Role::Resetter { name, .. } => name,
            Role::Reader { .. } => 0,
        }
    }

    /// The entries + 1 that it is counted as a user of, or 0.
    pub(super) fn handles(&self) -> [u8; 2] {
        let joined = matches!(self.role, Role::Resetter { joins: true, .. });
        match self.pc {
            Pc::Slot(scan) | Pc::Used(scan) => [scan.mine, 0],
            Pc::Look(scan, _) | Pc::Name(scan, ..) | Pc::Join(scan, ..) => [scan.mine, 0],
            Pc::Insert { entry, .. } | Pc::Fill { entry, .. } => [entry + 1, 0],
            Pc::Count(entry) | Pc::Kept(entry) => [entry + 1, 0],
            Pc::TakeBias(entry) | Pc::TakeLane { entry, .. } | Pc::TakeExchange { entry, .. }
                if joined =>
            {
                [entry + 1, 0]
            }
            Pc::Drop { entry, then } | Pc::DropExchange { entry, then, .. } => [entry + 1, then],
            Pc::Clear { then, .. } | Pc::Push { then, .. } => [0, then],
            Pc::Link { then, .. } | Pc::PushExchange { then, .. } => [0, then],
            _ => [0, 0],
        }
    }

    pub(super) fn step(&mut self, rules: &Rules, memory: &mut Memory) -> Step {
        let Some(next) = self.run(rules, memory) else {
            return Step::Blocked;
        };
        self.pc = next;
        match next {
            Pc::Kept(_) | Pc::Gone | Pc::Refused | Pc::Read { .. } | Pc::Void => Step::Finished,
            _ => Step::Ran,
        }
    }

    fn run(&mut self, rules: &Rules, memory: &mut Memory) -> Option<Pc> {
        self.look_up(rules, memory)
            .or_else(|| self.reserve(rules, memory))
            .or_else(|| self.write(rules, memory))
            .or_else(|| self.use_entry(rules, memory))
            .or_else(|| self.drop(rules, memory))
            .or_else(|| self.read(rules, memory))
    }

    /// Of a resetter, whether it joins.
    pub(super) fn resets(&self) -> Option<bool> {
        match self.role {
            Role::Resetter { joins, .. } => Some(joins),
            _ => None,
        }
    }

    /// Gives a handle back. The last one frees the entry.
    fn drop(&self, rules: &Rules, memory: &mut Memory) -> Option<Pc> {
        let next = match self.pc {
            Pc::Drop { entry, then } => Pc::DropExchange {
                entry,
                life: memory.entry(entry).life,
                then,
            },
            Pc::DropExchange { entry, life, then } => {
                let held = memory.entry(entry);
                if held.life != life {
                    return Some(Pc::Drop { entry, then });
                }
                held.life.users -= 1;
                if held.life.users > 0 {
                    return Some(with(then));
                }
                held.life.state = State::Retired;
                let (name, value) = (usize::from(held.name), held.value());
                memory.retired[name] += value;
                Pc::Clear { entry, at: 0, then }
            }
            Pc::Clear { entry, at, then } => {
                let slot = &mut memory.slots[usize::from(at)];
                let found = *slot == entry + 1;
                if found {
                    *slot = 0;
                }
                match found || at + 1 == rules.slots {
                    true => Pc::Push { entry, then },
                    false => Pc::Clear {
                        entry,
                        at: at + 1,
                        then,
                    },
                }
            }
            Pc::Push { entry, then } => Pc::Link {
                entry,
                head: memory.free,
                then,
            },
            Pc::Link { entry, head, then } => {
                memory.entry(entry).next = head.1;
                Pc::PushExchange { entry, head, then }
            }
            Pc::PushExchange { entry, head, then } => {
                match rules.exchange_head(head, entry + 1, memory) {
                    true => with(then),
                    false => Pc::Push { entry, then },
                }
            }
            _ => return None,
        };
        Some(next)
    }

    /// Life, entry, values, life.
    fn read(&self, rules: &Rules, memory: &Memory) -> Option<Pc> {
        let Role::Reader { entry } = self.role else {
            return None;
        };
        let entry = &memory.entries[usize::from(entry)];
        let next = match self.pc {
            Pc::ReadLife if entry.is_ready() => Pc::ReadName(entry.life),
            Pc::ReadLife => Pc::Void,
            Pc::ReadName(life) => Pc::ReadBias(life, entry.name),
            Pc::ReadBias(life, name) => Pc::ReadLane(life, name, entry.bias),
            Pc::ReadLane(life, name, bias) => Pc::ReadAgain(life, name, bias + entry.lane),
            Pc::ReadAgain(life, name, value) => {
                let same = entry.is_ready() && entry.life.generation == life.generation;
                match same || rules.flaw == Some(Flaw::ReadsLifeOnce) {
                    true => Pc::Read { name, value },
                    false => Pc::Void,
                }
            }
            _ => return None,
        };
        Some(next)
    }
}

/// Goes on with the other entry, or ends.
fn with(then: u8) -> Pc {
    match then.checked_sub(1) {
        Some(entry) => Pc::Count(entry),
        None => Pc::Gone,
    }
}
