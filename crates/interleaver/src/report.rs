//! What an exploration answers with: a report, or a failure with its trace.

use std::fmt;

use crate::{Protocol, World};

/// The size of an exploration that found nothing wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Distinct states.
    pub states: usize,
    /// Transitions between them, those to states already known included.
    pub transitions: usize,
    /// States where every thread has finished or was killed.
    pub finals: usize,
    /// States where no live thread can step, and some thread was killed: a deadlock if the others
    /// may not depend on it. Protocols that must survive kills assert that this is 0.
    pub stuck_after_kill: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} states, {} transitions, {} final, {} stuck after a kill",
            self.states, self.transitions, self.finals, self.stuck_after_kill
        )
    }
}

/// What an exploration stopped at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which sort it is.
    pub kind: Kind,
    /// What is wrong.
    pub message: String,
    /// How to get there from the start, one step a line.
    pub trace: Vec<String>,
}

/// The sorts of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A law of the protocol does not hold.
    Law,
    /// No live thread can step, and none was killed.
    Deadlock,
    /// Threads can step for ever ([`crate::Explorer::forbid_cycles`]).
    Cycle,
    /// There are more states than the cap ([`crate::Explorer::state_cap`]): nothing is known.
    StateCap,
    /// The settings name a CPU or a thread that does not exist.
    Settings,
}

impl Failure {
    pub(crate) fn without_trace(kind: Kind, message: String) -> Self {
        Failure {
            kind,
            message,
            trace: Vec::new(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        for (number, line) in self.trace.iter().enumerate() {
            write!(f, "\n{:>4}  {line}", number + 1)?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

/// What leads from one state to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Step { thread: usize, cpu: usize },
    Preempt { thread: usize },
    Signal { thread: usize },
    Kill { thread: usize },
}

/// A transition between two states, by index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) action: Action,
    pub(crate) to: usize,
}

/// One line of a trace.
pub(crate) fn line<P: Protocol>(
    protocol: &P,
    before: &World<P::Memory, P::Frame>,
    action: Action,
    after: &World<P::Memory, P::Frame>,
) -> String {
    let label = |thread: usize| match before.threads[thread].frames.as_slice() {
        [] => String::new(),
        [own] => protocol.label(own),
        [.., handler] => format!("(handler) {}", protocol.label(handler)),
    };
    let (actor, mut line) = match action {
        Action::Step { thread, cpu } => (
            thread,
            format!("thread {thread} on CPU {cpu}: {}", label(thread)),
        ),
        Action::Preempt { thread } => (
            thread,
            format!("thread {thread} loses its CPU before: {}", label(thread)),
        ),
        Action::Signal { thread } => (
            thread,
            format!("thread {thread} gets a signal before: {}", label(thread)),
        ),
        Action::Kill { thread } => (
            thread,
            format!("thread {thread} is killed before: {}", label(thread)),
        ),
    };
    for (thread, (was, is)) in before.threads.iter().zip(&after.threads).enumerate() {
        let by_itself = thread == actor && matches!(action, Action::Step { .. });
        if was.section_on.is_some() && is.section_on.is_none() && !by_itself {
            line += &format!("; section of thread {thread} aborted");
        }
    }
    if before.memory != after.memory {
        line += &format!("  => {:?}", after.memory);
    }
    line
}
