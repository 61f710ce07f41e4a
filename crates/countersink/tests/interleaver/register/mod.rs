//! Registration in the shared region: find an entry of the name and join its users, or make one;
//! drop it, free it, use it again; beside readers, resets from outside, and kills.

mod find;
mod make;
mod memory;
mod task;
mod tests;

use std::cell::Cell;

use countersink_interleaver::{Place, Protocol, Step, World};

use self::memory::{A, B, Entry, Head, Life, Memory, State};
use self::task::{Pc, Role, Task};

/// Room for every thread here, and for one that comes when all is over.
const ENTRIES: usize = 4;

/// A mistake that the laws must catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// An entry is ready before it is written.
    ReadyFirst,
    /// The free list's head has no tag.
    NoTag,
    /// An entry that is used again keeps its generation.
    SameGeneration,
    /// Users are raised by an add, whatever the state.
    JoinsBlindly,
    /// What the words hold is not taken when an entry is used again.
    KeepsCounts,
    /// A reader does not look at the life again.
    ReadsLifeOnce,
}

/// How a new entry comes into the index, where another may have made one for the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Index {
    /// Into the slot that was found empty when there was no entry. If it is filled by then, all is
    /// looked at again, and the new entry is left for another that is found.
    FillsSlotFound,
    /// Into the first slot that is empty. Then the group is looked at again, and the new entry is left
    /// for one with a lower number,
    LeavesHigherEntry,
    /// or for one in a slot before its own.
    LeavesLaterSlot,
}

/// What holds for all threads.
#[derive(Clone, Copy, Debug)]
struct Rules {
    slots: u8,
    index: Index,
    flaw: Option<Flaw>,
}

impl Rules {
    /// What follows when an entry is to be written.
    fn written(&self, entry: u8) -> Pc {
        match self.flaw == Some(Flaw::ReadyFirst) {
            true => Pc::Publish(entry),
            false => Pc::Write(entry),
        }
    }

    /// Exchanges the head of the free list, if it is still that one.
    fn exchange_head(&self, head: Head, entry: u8, memory: &mut Memory) -> bool {
        let same = memory.free == head;
        if same {
            let tag = u8::from(self.flaw != Some(Flaw::NoTag));
            memory.free = (head.0 + tag, entry);
        }
        same
    }
}

#[derive(Debug)]
struct Model {
    threads: Vec<Role>,
    /// Entries in the free list at the start.
    free: u8,
    rules: Rules,
    /// Whether two entries of one name that are left, without a kill, are a failure.
    once: bool,
    /// Ends with two ready entries of one name, both found or counted on: without a kill, and with one.
    twice: [Cell<usize>; 2],
}

impl Model {
    fn new(threads: &[Role]) -> Self {
        Model {
            threads: threads.to_vec(),
            free: 0,
            rules: Rules {
                slots: 3,
                index: Index::FillsSlotFound,
                flaw: None,
            },
            once: false,
            twice: Default::default(),
        }
    }

    fn check_task(&self, task: &Task, memory: &Memory) -> Result<(), String> {
        for handle in task.handles().into_iter().filter(|&handle| handle > 0) {
            let entry = &memory.entries[usize::from(handle - 1)];
            if !entry.is_ready() || entry.name != task.name() {
                let name = task.name();
                return Err(format!(
                    "handle: of name {name}, and the entry is {entry:?}"
                ));
            }
        }
        match task.pc {
            Pc::Refused => Err("refused, with entries left".into()),
            Pc::Read { name: A, value } if (0..10).contains(&value) => Ok(()),
            Pc::Read { name: B, value } if value >= 0 && value % 10 == 0 => Ok(()),
            Pc::Read { name, value } => Err(format!("read: {value} under name {name}")),
            _ => Ok(()),
        }
    }

    fn laws(&self, tasks: &[Task], memory: &Memory) -> Result<(), String> {
        for task in tasks {
            self.check_task(task, memory)?;
        }
        for (number, entry) in memory.entries.iter().enumerate() {
            let handles = tasks.iter().flat_map(Task::handles);
            let users = handles.filter(|&h| usize::from(h) == number + 1).count();
            let flawed = self.rules.flaw == Some(Flaw::ReadyFirst);
            if entry.is_ready() && usize::from(entry.life.users) != users && !flawed {
                return Err(format!("users: {users} of entry {number}, {entry:?}"));
            }
        }
        memory.check_free_list()?;
        memory.check_counts()
    }

    /// One more registrar, alone: it must find or make an entry, whatever the others left.
    fn check_late(&self, tasks: &[Task], memory: &Memory) -> Result<(), String> {
        for name in [A, B] {
            let mut memory = memory.clone();
            let mut late = Task::new(Role::User { name, drops: false });
            let steps = (0..100).find(|_| late.step(&self.rules, &mut memory) != Step::Ran);
            if steps.is_none() || !matches!(late.pc, Pc::Kept(_)) {
                return Err(format!("late: ended as {late:?}"));
            }
            let mut tasks = tasks.to_vec();
            tasks.push(late);
            self.laws(&tasks, &memory)
                .map_err(|message| format!("late: {message}"))?;
        }
        Ok(())
    }
}

impl Protocol for Model {
    type Memory = Memory;
    type Frame = Task;

    fn start(&self) -> (Memory, Vec<Task>) {
        let tasks = self.threads.iter().map(|&role| Task::new(role));
        let mut memory = Memory::default();
        for entry in 0..self.free {
            *memory.entry(entry) = Entry {
                life: Life {
                    state: State::Retired,
                    users: 0,
                    generation: 1,
                },
                next: (entry + 2) % (self.free + 1),
                ..Entry::default()
            };
        }
        (memory.used, memory.free.1) = (self.free, u8::from(self.free > 0));
        (memory, tasks.collect())
    }

    fn step(&self, _at: Place, task: &mut Task, memory: &mut Memory) -> Step {
        task.step(&self.rules, memory)
    }

    fn check(&self, world: &World<Memory, Task>) -> Result<(), String> {
        let tasks: Vec<Task> = world.threads.iter().map(|t| t.frames[0]).collect();
        self.laws(&tasks, &world.memory)
    }

    fn check_final(&self, world: &World<Memory, Task>) -> Result<(), String> {
        let tasks: Vec<Task> = world.threads.iter().map(|t| t.frames[0]).collect();
        if [A, B].iter().any(|&name| world.memory.in_use(name) > 1) {
            let killed = world.any_killed();
            let twice = &self.twice[usize::from(killed)];
            twice.set(twice.get() + 1);
            if self.once && !killed {
                return Err("twice: two entries of one name, and none was killed".into());
            }
        }
        self.check_late(&tasks, &world.memory)
    }
}
