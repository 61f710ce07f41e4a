//! The explorer spends no state on where a thread outside a section waits. Here is a scheduler that
//! does: every thread on a CPU or on none, put there and taken off one at a time. Both must reach
//! the same memory with the same frames.

use std::cell::RefCell;
use std::collections::HashSet;

use countersink_interleaver::{Explorer, Life, Place, Protocol, Step, Thread, World};

use crate::toy::Ins::*;
use crate::toy::{Frame, Toy, Words};

/// Memory, and each thread's frame; no frame once it has finished.
type Seen = HashSet<(Words, Vec<Option<Frame>>)>;

#[derive(Clone, PartialEq, Eq, Hash)]
struct Explicit {
    words: Words,
    /// Frame, and the CPU that the thread is on.
    threads: Vec<(Option<Frame>, Option<usize>)>,
}

impl Explicit {
    fn successors(&self, toy: &Toy, cpus: usize) -> Vec<Explicit> {
        let mut all = Vec::new();
        for (thread, (frame, on)) in self.threads.iter().enumerate() {
            let Some(frame) = frame else { continue };
            let mut next = self.clone();
            if let Some(cpu) = *on {
                let mut off = frame.clone();
                if toy.in_section(&off) {
                    toy.abort(&mut off);
                }
                next.threads[thread] = (Some(off), None);
                all.push(next.clone());

                let mut ran = frame.clone();
                next.words = self.words;
                let step = toy.step(Place { thread, cpu }, &mut ran, &mut next.words);
                next.threads[thread] = match step {
                    Step::Finished => (None, None),
                    _ => (Some(ran), Some(cpu)),
                };
                all.push(next);
            } else {
                let taken: Vec<_> = self.threads.iter().filter_map(|(_, on)| *on).collect();
                for cpu in (0..cpus).filter(|cpu| !taken.contains(cpu)) {
                    next.threads[thread].1 = Some(cpu);
                    all.push(next.clone());
                }
            }
        }
        all
    }
}

fn explicit(toy: &Toy, cpus: usize) -> Seen {
    let (words, frames) = toy.start();
    let threads = frames.into_iter().map(|frame| (Some(frame), None));
    let mut queue = vec![Explicit {
        words,
        threads: threads.collect(),
    }];
    let mut known: HashSet<_> = queue.iter().cloned().collect();
    while let Some(state) = queue.pop() {
        let next = state.successors(toy, cpus);
        queue.extend(next.into_iter().filter(|next| known.insert(next.clone())));
    }
    let frames = |state: Explicit| state.threads.into_iter().map(|(frame, _)| frame).collect();
    known.into_iter().map(|s| (s.words, frames(s))).collect()
}

thread_local! {
    static SEEN: RefCell<Seen> = RefCell::default();
}

fn note(world: &World<Words, Frame>) -> Result<(), String> {
    let live = |t: &Thread<Frame>| (t.life == Life::Live).then(|| t.frames[0].clone());
    let frames = world.threads.iter().map(live).collect();
    SEEN.with_borrow_mut(|seen| seen.insert((world.memory, frames)));
    Ok(())
}

#[test]
fn placement_adds_nothing_and_loses_nothing() {
    let programs: [&[_]; 3] = [
        &[Section, LoadLane, StoreLane, Section, LoadLane, StoreLane],
        &[LoadLane, Section, StoreLane],
        &[LoadLane, StoreLane],
    ];
    for cpus in 1..=3 {
        let mut toy = Toy::new(&programs);
        toy.each = note;
        SEEN.take();
        let report = Explorer::new(cpus).explore(&toy).unwrap();
        let (lazy, explicit) = (SEEN.take(), explicit(&toy, cpus));
        println!("{cpus} CPUs: {report}; {} without CPUs", lazy.len());
        assert!(lazy == explicit, "{} and {}", lazy.len(), explicit.len());
    }
}
