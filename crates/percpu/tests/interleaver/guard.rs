//! A thread that raises the guard and makes sure that no guarded add comes after.

use countersink_interleaver::Step;

use crate::model::Memory;

/// Raises the guard, fences the first so many CPUs, and looks at the lanes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Raise {
    fences: usize,
    next: Next,
    /// The first word of every lane when all was done; for the laws only.
    closed: Option<Vec<u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    Store,
    Fence(usize),
}

impl Raise {
    pub(crate) fn new(fences: usize) -> Self {
        Raise {
            fences,
            next: Next::Store,
            closed: None,
        }
    }

    pub(crate) fn step(&mut self, memory: &mut Memory) -> Step {
        match self.next {
            Next::Store => {
                memory.guard = 1;
                self.next = Next::Fence(0);
                Step::Ran
            }
            Next::Fence(cpu) if cpu < self.fences => {
                self.next = Next::Fence(cpu + 1);
                Step::Fence(cpu)
            }
            Next::Fence(_) => {
                self.closed = Some(memory.lanes.iter().map(|lane| lane[0]).collect());
                Step::Finished
            }
        }
    }

    /// The law of each state: once closed, the CPU lanes stand still.
    pub(crate) fn check(&self, memory: &Memory) -> Result<(), String> {
        let Some(closed) = &self.closed else {
            return Ok(());
        };
        let (_shared, cpus) = closed.split_last().unwrap_or((&0, &[]));
        for (cpu, was) in cpus.iter().enumerate() {
            let now = memory.lanes[cpu][0];
            if now != *was {
                return Err(format!(
                    "guard: lane {cpu} went from {was} to {now}, closed"
                ));
            }
        }
        Ok(())
    }

    /// The law of the end, if none was killed: adds that came to the shared lane once it was closed
    /// have been taken back.
    pub(crate) fn check_final(&self, memory: &Memory) -> Result<(), String> {
        let shared = memory.lanes.last().map(|lane| lane[0]);
        let was = self.closed.as_ref().and_then(|closed| closed.last());
        match (was, shared) {
            (Some(&was), Some(now)) if now > was => Err(format!(
                "guard: the shared lane grew from {was} to {now}, closed"
            )),
            _ => Ok(()),
        }
    }
}
