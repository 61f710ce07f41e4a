//! What a user of the explorer writes: a protocol as a state machine, and its laws.

use std::fmt::Debug;
use std::hash::Hash;

use crate::World;

/// Where a step runs. What runs outside a section may find itself on another CPU at its next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The thread, from 0, in the order of [`Protocol::start`].
    pub thread: usize,
    /// The CPU, from 0.
    pub cpu: usize,
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It ran, and the frame goes on.
    Ran,
    /// It ran, and the frame is finished: a handler's is popped, a thread's own stays to be seen.
    Finished,
    /// It cannot run now: what it did to frame and memory is undone, and it is tried again later.
    Blocked,
    /// It ran, and aborted the section that was running on this CPU, if that thread is of the same
    /// process ([`Protocol::same_process`]).
    ///
    /// `membarrier` interrupts CPUs one by one, with other threads running in between: a protocol
    /// fences each CPU in a step of its own.
    Fence(usize),
}

/// A protocol: memory, the micro-programs that work on it, and the laws that must hold.
///
/// Nothing in memory or frames may count up without bound, or the exploration never ends.
pub trait Protocol {
    /// The memory that all threads share, with whatever else the laws need to be told.
    type Memory: Clone + Eq + Hash + Debug;
    /// A program counter and its registers.
    type Frame: Clone + Eq + Hash + Debug;

    /// The memory at the start, and one frame for each thread.
    fn start(&self) -> (Self::Memory, Vec<Self::Frame>);

    /// Runs one step of `frame`: at most one access to `memory`, or one locked instruction.
    fn step(&self, at: Place, frame: &mut Self::Frame, memory: &mut Self::Memory) -> Step;

    /// Whether the frame stands inside a section, the commit still to come. The step that moves a
    /// frame into a section fixes the CPU of the section; the commit is the step that moves it out.
    fn in_section(&self, _frame: &Self::Frame) -> bool {
        false
    }

    /// Moves a frame that stands in a section to its abort point. Registers are lost: clear them,
    /// so that equal states are equal. The frame must be outside any section afterwards.
    fn abort(&self, _frame: &mut Self::Frame) {}

    /// The frame that a signal pushes onto this thread; `None` if the thread takes no signals.
    fn handler(&self, _thread: usize) -> Option<Self::Frame> {
        None
    }

    /// Whether a fence by one thread reaches the other.
    fn same_process(&self, _one: usize, _other: usize) -> bool {
        true
    }

    /// What a frame is about to do, for traces.
    fn label(&self, frame: &Self::Frame) -> String {
        format!("{frame:?}")
    }

    /// The laws of every state.
    ///
    /// # Errors
    /// Which law is broken, and how.
    fn check(&self, _world: &World<Self::Memory, Self::Frame>) -> Result<(), String> {
        Ok(())
    }

    /// The laws of the states where every thread has finished or was killed.
    ///
    /// # Errors
    /// Which law is broken, and how.
    fn check_final(&self, _world: &World<Self::Memory, Self::Frame>) -> Result<(), String> {
        Ok(())
    }
}
