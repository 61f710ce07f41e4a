//! The kernel's algorithm: read the CPU's word, then exchange it by an unlocked instruction on whatever CPU the thread is by then, or fold
//! it under a lock. The question asked about it was what happens if another CPU's word is equal.

use countersink_interleaver::{Explorer, Place, Protocol, Step, World};

use crate::{CPUS, breaks, holds};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Memory {
    lanes: [i8; CPUS],
    count: i8,
    added: i8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Pc {
    Read,
    /// Decides, and exchanges or folds. The exchange is one instruction of the CPU, and the fold happens with interrupts off
    /// and the lock held: neither is seen in part.
    Exchange(i8),
    Fold,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Frame {
    done: usize,
    pc: Pc,
}

struct Kernel {
    /// What each thread adds.
    threads: Vec<Vec<i8>>,
    batch: i8,
    /// `unlikely(abs(count + amount)) >= batch`, which compares a truth value.
    parenthesis: bool,
    /// Restarts the whole addition where it only retries.
    adds_on_any: bool,
}

impl Protocol for Kernel {
    type Memory = Memory;
    type Frame = Frame;

    fn start(&self) -> (Memory, Vec<Frame>) {
        let memory = Memory {
            lanes: [0; CPUS],
            count: 0,
            added: 0,
        };
        let frame = |_: &Vec<i8>| Frame {
            done: 0,
            pc: Pc::Read,
        };
        (memory, self.threads.iter().map(frame).collect())
    }

    fn step(&self, at: Place, frame: &mut Frame, memory: &mut Memory) -> Step {
        let n = self.threads[at.thread][frame.done];
        let must_fold = |count: i8| match self.parenthesis {
            true => i8::from(count + n != 0) >= self.batch,
            false => (count + n).abs() >= self.batch,
        };
        let decided = |count| {
            if must_fold(count) {
                Pc::Fold
            } else {
                Pc::Exchange(count)
            }
        };
        let mut ended = false;
        match frame.pc {
            Pc::Read => frame.pc = decided(memory.lanes[at.cpu]),
            Pc::Exchange(count) if memory.lanes[at.cpu] == count || self.adds_on_any => {
                memory.lanes[at.cpu] = count + n;
                ended = true;
            }
            Pc::Exchange(_) => frame.pc = decided(memory.lanes[at.cpu]),
            Pc::Fold => {
                memory.count += memory.lanes[at.cpu] + n;
                memory.lanes[at.cpu] = 0;
                ended = true;
            }
        }
        if ended {
            memory.added += n;
            frame.pc = Pc::Read;
            frame.done += 1;
            if frame.done == self.threads[at.thread].len() {
                return Step::Finished;
            }
        }
        Step::Ran
    }

    fn check(&self, world: &World<Memory, Frame>) -> Result<(), String> {
        let memory = &world.memory;
        let sum = memory.count + memory.lanes.iter().sum::<i8>();
        if sum != memory.added {
            return Err(format!("lost: {sum} of {}", memory.added));
        }
        let bound = self.batch * CPUS as i8;
        if (memory.count - memory.added).abs() > bound {
            return Err(format!(
                "bound: {} is read of {}",
                memory.count, memory.added
            ));
        }
        Ok(())
    }
}

fn kernel(threads: &[&[i8]]) -> Kernel {
    Kernel {
        threads: threads.iter().map(|adds| adds.to_vec()).collect(),
        batch: 2,
        parenthesis: false,
        adds_on_any: false,
    }
}

fn explorer() -> Explorer {
    Explorer::new(CPUS)
}

/// All words begin equal, and threads move between the read and the exchange: an exchange of an equal word is as right on one CPU
/// as on the other, since what was decided depends on the word only.
#[test]
fn equal_values_on_two_cpus() {
    for threads in [
        &[&[1_i8, 1][..], &[1, -1]][..],
        &[&[1], &[1], &[1, 1]],
        &[&[3, -1], &[-1, 1]],
    ] {
        holds(
            &format!("kernel, {threads:?}"),
            &explorer(),
            &kernel(threads),
        );
    }
}

#[test]
fn mutants_are_found() {
    let mut model = kernel(&[&[1, 1, 1], &[1, 1, 1]]);
    model.parenthesis = true;
    breaks(
        "kernel, parenthesis",
        &explorer(),
        &model,
        "bound: 0 is read of 5",
    );
    let mut model = kernel(&[&[1], &[1, 1]]);
    model.adds_on_any = true;
    breaks(
        "kernel, exchange without comparison",
        &explorer(),
        &model,
        "lost",
    );
}
