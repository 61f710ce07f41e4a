//! The search: breadth first over full states, so that the first trace found is a shortest one.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::hash::BuildHasherDefault;
use std::rc::Rc;

use crate::report::{Action, Edge, line};
use crate::{Failure, Kind, Place, Protocol, Report, World, cycle};

/// What to explore a protocol under. All settings are budgets of one exploration.
#[derive(Clone, Debug)]
pub struct Explorer {
    cpus: usize,
    signals: u8,
    kills: u8,
    state_cap: usize,
    preempt: bool,
    forbid_cycles: bool,
    /// Thread and CPU.
    pins: Vec<(usize, usize)>,
}

impl Explorer {
    /// Explores over so many CPUs, with preemption and migration at every step, without signals or
    /// kills, up to two million states.
    pub fn new(cpus: usize) -> Self {
        Explorer {
            cpus,
            signals: 0,
            kills: 0,
            state_cap: 2_000_000,
            preempt: true,
            forbid_cycles: false,
            pins: Vec::new(),
        }
    }

    /// Delivers up to so many signals, each to any thread at any step.
    pub fn signals(mut self, most: u8) -> Self {
        self.signals = most;
        self
    }

    /// Kills up to so many threads, each at any step.
    pub fn kills(mut self, most: u8) -> Self {
        self.kills = most;
        self
    }

    /// Gives up with [`Kind::StateCap`] when there are more states than this.
    pub fn state_cap(mut self, most: usize) -> Self {
        self.state_cap = most;
        self
    }

    /// Whether threads in sections lose their CPU. Without, only signals and fences abort.
    pub fn preempt(mut self, yes: bool) -> Self {
        self.preempt = yes;
        self
    }

    /// Keeps a thread on one CPU.
    pub fn pin(mut self, thread: usize, cpu: usize) -> Self {
        self.pins.push((thread, cpu));
        self
    }

    /// Makes it a failure ([`Kind::Cycle`]) if a state can be reached from itself, which means that
    /// threads can step for ever. Only a step can close a cycle: signals and kills use up budget,
    /// and what a preemption aborts must step to be in a section again. So where there is no cycle,
    /// every thread finishes after a bounded number of its own steps, whatever the others do and
    /// however often it is aborted.
    pub fn forbid_cycles(mut self) -> Self {
        self.forbid_cycles = true;
        self
    }

    /// Visits every reachable state once.
    ///
    /// # Errors
    /// The first failure in breadth-first order: a broken law, a deadlock, more states than the
    /// cap, or settings that make no sense; after those, a cycle.
    pub fn explore<P: Protocol>(&self, protocol: &P) -> Result<Report, Failure> {
        let (memory, frames) = protocol.start();
        self.check_settings(frames.len())?;
        let mut search = Search {
            explorer: self,
            protocol,
            index: HashMap::default(),
            nodes: Vec::new(),
            edges: Vec::new(),
            report: Report::default(),
        };
        let world = World::new(memory, frames, self.signals, self.kills);
        search.visit(Rc::new(world), None)?;
        let mut from = 0;
        while from < search.nodes.len() {
            search.expand(from)?;
            from += 1;
        }
        search.check_cycles()?;
        Ok(search.report)
    }

    fn check_settings(&self, threads: usize) -> Result<(), Failure> {
        let pinned = |&(thread, cpu): &(usize, usize)| thread < threads && cpu < self.cpus;
        if self.cpus == 0 || !self.pins.iter().all(pinned) {
            let message = format!(
                "no such CPU or thread: {} CPUs, {threads} threads, (thread, CPU) pins {:?}",
                self.cpus, self.pins
            );
            return Err(Failure::without_trace(Kind::Settings, message));
        }
        Ok(())
    }

    fn may_run(&self, thread: usize, cpu: usize) -> bool {
        let kept_away = |&(t, c): &(usize, usize)| t == thread && c != cpu;
        !self.pins.iter().any(kept_away)
    }
}

type WorldOf<P> = World<<P as Protocol>::Memory, <P as Protocol>::Frame>;

/// A state that was reached, and how it was first.
struct Node<P: Protocol> {
    world: Rc<WorldOf<P>>,
    from: Option<(usize, Action)>,
}

struct Search<'a, P: Protocol> {
    explorer: &'a Explorer,
    protocol: &'a P,
    /// Every state, in full: two states with one hash are two states. The hasher has no random
    /// keys, though nothing depends on its order.
    index: HashMap<Rc<WorldOf<P>>, usize, BuildHasherDefault<DefaultHasher>>,
    /// By index; those not yet expanded are the queue.
    nodes: Vec<Node<P>>,
    /// All transitions, if cycles are looked for.
    edges: Vec<Edge>,
    report: Report,
}

impl<P: Protocol> Search<'_, P> {
    /// Takes a state in, if it is new, and checks its laws.
    fn visit(
        &mut self,
        world: Rc<WorldOf<P>>,
        from: Option<(usize, Action)>,
    ) -> Result<(), Failure> {
        let new = self.nodes.len();
        let to = match self.index.entry(Rc::clone(&world)) {
            Entry::Occupied(old) => *old.get(),
            Entry::Vacant(free) => *free.insert(new),
        };
        if let Some((from, action)) = from {
            self.report.transitions += 1;
            if self.explorer.forbid_cycles {
                self.edges.push(Edge { from, action, to });
            }
        }
        if to < new {
            return Ok(());
        }
        self.nodes.push(Node {
            world: Rc::clone(&world),
            from,
        });
        self.report.states += 1;
        self.check_laws(&world)
            .map_err(|message| self.failure(Kind::Law, message, to))?;
        if self.report.states > self.explorer.state_cap {
            let message = format!("more than {} states", self.explorer.state_cap);
            return Err(Failure::without_trace(Kind::StateCap, message));
        }
        Ok(())
    }

    fn check_laws(&mut self, world: &WorldOf<P>) -> Result<(), String> {
        self.protocol.check(world)?;
        if world.is_final() {
            self.report.finals += 1;
            self.protocol.check_final(world)?;
        }
        Ok(())
    }

    /// Takes every transition out of a state.
    fn expand(&mut self, from: usize) -> Result<(), Failure> {
        let world = Rc::clone(&self.nodes[from].world);
        let mut stuck = true;
        for thread in (0..world.threads.len()).filter(|&t| world.is_live(t)) {
            stuck &= !self.run(from, &world, thread)?;
            let disturbances = [
                (
                    Action::Signal { thread },
                    world.signal(self.protocol, thread),
                ),
                (Action::Kill { thread }, world.kill(self.protocol, thread)),
            ];
            for (action, next) in disturbances {
                if let Some(next) = next {
                    self.visit(Rc::new(next), Some((from, action)))?;
                }
            }
        }
        if !stuck || world.is_final() {
            Ok(())
        } else if world.any_killed() {
            self.report.stuck_after_kill += 1;
            Ok(())
        } else {
            let message = "deadlock: no live thread can step".to_owned();
            Err(self.failure(Kind::Deadlock, message, from))
        }
    }

    /// Lets a thread step on every CPU that it can, and takes its CPU away. Whether it could.
    fn run(&mut self, from: usize, world: &WorldOf<P>, thread: usize) -> Result<bool, Failure> {
        let mut moved = false;
        for cpu in 0..self.explorer.cpus {
            if !self.explorer.may_run(thread, cpu) || !world.can_run_on(thread, cpu) {
                continue;
            }
            if let Some(next) = world.step(self.protocol, Place { thread, cpu }) {
                moved = true;
                self.visit(Rc::new(next), Some((from, Action::Step { thread, cpu })))?;
            }
        }
        if self.explorer.preempt
            && let Some(next) = world.preempt(self.protocol, thread)
        {
            moved = true;
            self.visit(Rc::new(next), Some((from, Action::Preempt { thread })))?;
        }
        Ok(moved)
    }

    fn check_cycles(&self) -> Result<(), Failure> {
        let Some(cycle) = cycle::find(self.nodes.len(), &self.edges) else {
            return Ok(());
        };
        let message = "cycle: threads can step for ever".to_owned();
        let first = cycle.first().map_or(0, |edge| edge.from);
        let mut failure = self.failure(Kind::Cycle, message, first);
        failure.trace.push("and from here round and round:".into());
        failure.trace.extend(cycle.iter().map(|e| self.line(*e)));
        Err(failure)
    }

    /// A failure with the trace from the start to a state.
    fn failure(&self, kind: Kind, message: String, state: usize) -> Failure {
        let mut trace = Vec::new();
        let mut to = state;
        while let Some((from, action)) = self.nodes[to].from {
            trace.push(self.line(Edge { from, action, to }));
            to = from;
        }
        trace.reverse();
        Failure {
            kind,
            message,
            trace,
        }
    }

    fn line(&self, edge: Edge) -> String {
        let (before, after) = (&self.nodes[edge.from].world, &self.nodes[edge.to].world);
        line(self.protocol, before, edge.action, after)
    }
}
