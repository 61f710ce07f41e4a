//! One state of an exploration, and the transitions out of it.
//!
//! A thread has a CPU only while it is in a section. Elsewhere it may have been preempted and
//! migrated since its last step without being able to tell, so its next step may run on any CPU,
//! and no state is spent on where it waits. That loses no interleaving and adds none: before a step
//! on a CPU the scheduler can always take that CPU from a thread outside a section, at no cost to
//! it, and takes it from a thread in a section by aborting that one ([`World::preempt`]) first.
//! `tests/toys/placement.rs` checks this against a scheduler that places every thread.

use crate::{Place, Protocol, Step};

/// One state: memory, threads, and what is left of the budgets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World<M, F> {
    /// The memory that all threads share.
    pub memory: M,
    /// The threads, in the order of [`Protocol::start`].
    pub threads: Vec<Thread<F>>,
    /// How many more signals may be delivered.
    pub signals_left: u8,
    /// How many more threads may be killed.
    pub kills_left: u8,
}

/// One thread of a [`World`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Thread<F> {
    /// Its own frame, then those of the handlers that interrupted it. Only the last one runs.
    pub frames: Vec<F>,
    /// The CPU of the section that the last frame stands in, if it does.
    pub section_on: Option<usize>,
    /// Whether it still runs.
    pub life: Life,
}

/// Whether a thread still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Life {
    /// It has steps to run.
    Live,
    /// It ran its last step. Its frame stays as it was after that.
    Finished,
    /// It was killed. Its frames stay as they were, one in a section at its abort point.
    Killed,
}

impl<M: Clone, F: Clone> World<M, F> {
    /// The first state.
    pub(crate) fn new(memory: M, frames: Vec<F>, signals_left: u8, kills_left: u8) -> Self {
        let thread = |frame| Thread {
            frames: vec![frame],
            section_on: None,
            life: Life::Live,
        };
        World {
            memory,
            threads: frames.into_iter().map(thread).collect(),
            signals_left,
            kills_left,
        }
    }

    /// Whether the thread has steps to run.
    pub fn is_live(&self, thread: usize) -> bool {
        self.threads[thread].life == Life::Live
    }

    /// Whether every thread has finished or was killed.
    pub fn is_final(&self) -> bool {
        self.threads.iter().all(|t| t.life != Life::Live)
    }

    /// Whether some thread was killed.
    pub fn any_killed(&self) -> bool {
        self.threads.iter().any(|t| t.life == Life::Killed)
    }

    /// Whether a thread can make its next step on a CPU: a thread in a section on its own one,
    /// any other wherever no section is in the way.
    pub(crate) fn can_run_on(&self, thread: usize, cpu: usize) -> bool {
        match self.threads[thread].section_on {
            Some(own) => own == cpu,
            None => self.threads.iter().all(|t| t.section_on != Some(cpu)),
        }
    }

    /// The state after a step, or `None` if the step is blocked.
    pub(crate) fn step<P>(&self, protocol: &P, at: Place) -> Option<Self>
    where
        P: Protocol<Memory = M, Frame = F>,
    {
        let mut next = self.clone();
        let thread = &mut next.threads[at.thread];
        let frame = thread.frames.last_mut()?;
        let step = protocol.step(at, frame, &mut next.memory);
        thread.section_on = protocol.in_section(frame).then_some(at.cpu);
        match step {
            Step::Ran => {}
            Step::Blocked => return None,
            Step::Finished => thread.finish_frame(),
            Step::Fence(cpu) => {
                for other in 0..next.threads.len() {
                    let reached = other != at.thread && protocol.same_process(at.thread, other);
                    if reached && next.threads[other].section_on == Some(cpu) {
                        next.threads[other].abort(protocol);
                    }
                }
            }
        }
        Some(next)
    }

    /// The state after a thread in a section lost its CPU, to another thread, to a migration, or
    /// to be put back at once.
    pub(crate) fn preempt<P>(&self, protocol: &P, thread: usize) -> Option<Self>
    where
        P: Protocol<Memory = M, Frame = F>,
    {
        self.threads[thread].section_on?;
        let mut next = self.clone();
        next.threads[thread].abort(protocol);
        Some(next)
    }

    /// The state after a signal to a live thread, if one is left and the thread takes it.
    pub(crate) fn signal<P>(&self, protocol: &P, thread: usize) -> Option<Self>
    where
        P: Protocol<Memory = M, Frame = F>,
    {
        let signals_left = self.signals_left.checked_sub(1)?;
        let handler = protocol.handler(thread)?;
        let mut next = self.clone();
        next.signals_left = signals_left;
        next.threads[thread].abort(protocol);
        next.threads[thread].frames.push(handler);
        Some(next)
    }

    /// The state after a live thread was killed, if a kill is left.
    pub(crate) fn kill<P>(&self, protocol: &P, thread: usize) -> Option<Self>
    where
        P: Protocol<Memory = M, Frame = F>,
    {
        let mut next = self.clone();
        next.kills_left = self.kills_left.checked_sub(1)?;
        next.threads[thread].abort(protocol);
        next.threads[thread].life = Life::Killed;
        Some(next)
    }
}

impl<F> Thread<F> {
    /// Aborts the section that the last frame stands in, if it does. The frames below are never in
    /// one: the signal that stopped them aborted it.
    fn abort<P: Protocol<Frame = F>>(&mut self, protocol: &P) {
        if self.section_on.take().is_some()
            && let Some(frame) = self.frames.last_mut()
        {
            protocol.abort(frame);
        }
    }

    fn finish_frame(&mut self) {
        self.section_on = None;
        if self.frames.len() > 1 {
            self.frames.pop();
        } else {
            self.life = Life::Finished;
        }
    }
}
