//! The locks as variants of points.

use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use countersink_harness::variant::{Point, Variant, Worker};

use super::locks::{
    Counted, Default, Loads, Lock, OwnFirst, ParkingLot, Percpu, RWSEM, Sharded, Spin, Spinlock,
    Std,
};
use super::work::work;
use super::{Events, Op, RwsemExperiment, Work};

/// What the lock guards: words that a writer makes equal one after the other. They are atomic so that a lock that lets
/// somebody in is found without undefined behaviour; all accesses are plain loads and stores.
#[derive(Debug, Default)]
pub struct Twins([AtomicU64; 2]);

impl Twins {
    #[inline(always)]
    fn add(&self) {
        for word in &self.0 {
            word.store(word.load(Relaxed) + 1, Relaxed);
        }
    }

    #[inline(always)]
    fn differ(&self) -> bool {
        let [first, second] = self.0.each_ref().map(|word| word.load(Relaxed));
        first != second
    }

    fn get(&self) -> u64 {
        self.0[0].load(Relaxed)
    }
}

/// All locks at one point.
pub(super) fn point(experiment: &RwsemExperiment, op: Op, threads: usize) -> Point<'_> {
    let counted = Locking {
        events: Some(experiment),
        ..Locking::<Counted>::new("rwsem-counted", op, experiment.work)
    };
    let point = Point::new(op.name(), &op.pattern(), threads).with(Locking::<Default>::new(
        "rwsem",
        op,
        experiment.work,
    ));
    let point = match op {
        Op::TryRead => point
            .with(Locking::<OwnFirst>::new(
                "rwsem-ownership-first",
                op,
                experiment.work,
            ))
            .with(Locking::<Loads>::new(
                "rwsem-load-first",
                op,
                experiment.work,
            )),
        _ => point,
    };
    let point = point.with(counted);
    point
        .with(Locking::<Percpu>::new("percpu-rwsem", op, experiment.work))
        .with(Locking::<Spinlock>::new(
            "spinlock-count",
            op,
            experiment.work,
        ))
        .with(Locking::<Std>::new("std", op, experiment.work))
        .with(Locking::<ParkingLot>::new(
            "parking_lot",
            op,
            experiment.work,
        ))
        .with(Locking::<Spin>::new("spin", op, experiment.work))
        .with(Locking::<Sharded>::new("sharded", op, experiment.work))
}

/// One lock, made when its point begins.
struct Locking<'a, L> {
    name: &'static str,
    op: Op,
    work: Work,
    made: OnceLock<Made<L>>,
    /// Whoever wants to know of its events, which begin at 0 at each point.
    events: Option<&'a RwsemExperiment>,
}

/// A lock, and what was done to it.
struct Made<L> {
    lock: L,
    writes: AtomicU64,
    torn: AtomicU64,
}

impl<L: Lock> Locking<'_, L> {
    fn new(name: &'static str, op: Op, work: Work) -> Self {
        Locking {
            name,
            op,
            work,
            made: OnceLock::new(),
            events: None,
        }
    }

    fn made(&self) -> &Made<L> {
        self.made.get_or_init(|| {
            if self.events.is_some() {
                RWSEM.take();
            }
            Made {
                lock: L::new(),
                writes: AtomicU64::new(0),
                torn: AtomicU64::new(0),
            }
        })
    }
}

impl<L: Lock> Variant for Locking<'_, L> {
    fn name(&self) -> &str {
        self.name
    }

    fn worker(&self, thread_index: usize, _threads: usize) -> Box<dyn Worker + '_> {
        Box::new(Locks {
            made: self.made(),
            op: self.op,
            work: self.work,
            random: 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(thread_index as u64 + 1),
        })
    }

    fn check(&self, operations: &[u64]) -> Result<(), String> {
        let made = self.made();
        if let Some(experiment) = self.events {
            experiment.note(Events {
                op: self.op,
                threads: operations.len(),
                counts: RWSEM.read().to_vec(),
            });
        }
        let (writes, torn) = (made.writes.load(Relaxed), made.torn.load(Relaxed));
        let mut found = 0;
        made.lock.read(|twins| found = twins.get());
        if torn > 0 {
            Err(format!("{torn} readers saw a writer in the middle"))
        } else if found != writes {
            Err(format!("{writes} wrote, {found} were found"))
        } else {
            Ok(())
        }
    }
}

struct Locks<'a, L> {
    made: &'a Made<L>,
    op: Op,
    work: Work,
    random: u64,
}

impl<L: Lock> Locks<'_, L> {
    /// Repeats one operation, and tells how many wrote and how many read what is torn, which are counted in registers.
    #[inline(always)]
    fn repeat(&mut self, operations: u64, mut once: impl FnMut(&L, &mut [u64; 2])) {
        let (lock, gap) = (&self.made.lock, self.work.gap);
        let mut done = [0, 0];
        for _ in 0..operations {
            once(lock, &mut done);
            work(gap);
        }
        self.made.writes.fetch_add(done[0], Relaxed);
        self.made.torn.fetch_add(done[1], Relaxed);
    }

    fn mix(&mut self, operations: u64, percent: u32) {
        let load = self.work.load;
        let mut random = self.random;
        self.repeat(operations, |lock, [writes, torn]| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            if (random >> 32) % 100 < u64::from(percent) {
                lock.read(read(load, torn));
            } else {
                lock.write(write(load, writes));
            }
        });
        self.random = random;
    }
}

/// Where nobody writes, nothing can be torn.
#[inline(always)]
fn look(load: u32) -> impl FnOnce(&Twins) {
    move |twins| {
        black_box(twins.get());
        work(load);
    }
}

#[inline(always)]
fn read(load: u32, torn: &mut u64) -> impl FnOnce(&Twins) {
    move |twins| {
        *torn += u64::from(twins.differ());
        work(load);
    }
}

#[inline(always)]
fn write(load: u32, writes: &mut u64) -> impl FnOnce(&Twins) {
    move |twins| {
        twins.add();
        *writes += 1;
        work(load);
    }
}

impl<L: Lock> Worker for Locks<'_, L> {
    fn run(&mut self, operations: u64) {
        let load = self.work.load;
        match self.op {
            Op::TryRead => self.repeat(operations, |lock, _| {
                black_box(lock.try_read(look(load)));
            }),
            Op::Read => self.repeat(operations, |lock, _| lock.read(look(load))),
            Op::Write => self.repeat(operations, |lock, [writes, _]| {
                lock.write(write(load, writes));
            }),
            Op::TryWrite => self.repeat(operations, |lock, [writes, _]| {
                black_box(lock.try_write(write(load, writes)));
            }),
            Op::Mixed(percent) => self.mix(operations, percent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets everybody in.
    struct Open(Twins);

    impl Lock for Open {
        fn new() -> Self {
            Open(Twins::default())
        }
        fn read(&self, body: impl FnOnce(&Twins)) {
            body(&self.0);
        }
        fn write(&self, body: impl FnOnce(&Twins)) {
            body(&self.0);
        }
        fn try_read(&self, body: impl FnOnce(&Twins)) -> bool {
            body(&self.0);
            true
        }
        fn try_write(&self, body: impl FnOnce(&Twins)) -> bool {
            body(&self.0);
            true
        }
    }

    const OPERATIONS: u64 = 300_000;

    fn two_threads<L: Lock>(op: Op) -> Result<(), String> {
        let locking = Locking::<L>::new("lock", op, Work::default());
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let locking = &locking;
                scope.spawn(move || locking.worker(thread, 2).run(OPERATIONS));
            }
        });
        locking.check(&[OPERATIONS; 2])
    }

    /// Each lock keeps its writes; without one they are lost, or readers see them half done.
    #[test]
    fn a_lock_that_lets_everybody_in_is_found() {
        let ops = [Op::Write, Op::TryWrite, Op::Mixed(50)];
        for op in ops {
            two_threads::<Default>(op).expect("rwsem");
            two_threads::<Counted>(op).expect("rwsem-counted");
            two_threads::<Spinlock>(op).expect("spinlock-count");
            two_threads::<Std>(op).expect("std");
        }
        two_threads::<Percpu>(Op::TryRead).expect("percpu-rwsem");
        // On one CPU it takes a preemption in the middle.
        let found = (0..100).any(|_| ops.iter().any(|op| two_threads::<Open>(*op).is_err()));
        assert!(found);
    }

    #[test]
    fn points_have_the_forms_where_they_differ() {
        let experiment = RwsemExperiment::new(&Op::DEFAULT, &[1, 2], Work::default());
        let names = |op| {
            let point = point(&experiment, op, 2);
            point
                .variants
                .iter()
                .map(|variant| variant.name().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(Op::TryRead).len(), 10);
        assert_eq!(names(Op::Read).len(), 8);
        assert!(names(Op::TryRead).contains(&"rwsem-load-first".to_owned()));
    }
}
