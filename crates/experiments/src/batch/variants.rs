//! The ways as variants of points.

use std::hint::black_box;
use std::marker::PhantomData;
use std::sync::OnceLock;

use countersink_harness::variant::{Lent, PerThread, Point, Variant, Worker};

use super::kernel::{Kernel, Masked, Nested};
use super::statics;
use super::ways::{Atomic, Carry, PerCpu, Tree, Way};
use super::{ADD, Amounts, READ};

/// Amounts from -3 to 12, 4.5 on average: 256 of them, so that a mask finds one.
pub(super) const MIXED: [i64; 256] = mixed();

const fn mixed() -> [i64; 256] {
    let mut amounts = [0; 256];
    let mut state: u64 = 0x2545_f491_4f6c_dd1d;
    let mut at = 0;
    while at < 256 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        amounts[at] = (state >> 40) as i64 % 16 - 3;
        at += 1;
    }
    amounts
}

/// Everything that adds.
pub(super) fn add(batch: u32, amounts: Amounts, threads: usize) -> Point<'static> {
    let point = Point::new(ADD, &amounts.pattern(batch), threads)
        .with(Adds::<PerCpu>::new(batch, amounts))
        .with(Adds::<Carry>::new(batch, amounts))
        .with(statics::Adds::new(batch, amounts))
        .with(Adds::<Kernel>::new(batch, amounts))
        .with(Adds::<Nested>::new(batch, amounts))
        .with(Adds::<Masked>::new(batch, amounts))
        .with(Adds::<Atomic>::new(batch, amounts))
        .with(Adds::<Tree>::new(batch, amounts));
    match amounts {
        Amounts::Ones => point,
        Amounts::Mixed => point.with(Loop),
    }
}

/// Everything that reads, with something in the lanes.
pub(super) fn read(batch: u32, threads: usize) -> Point<'static> {
    Point::new(READ, &Amounts::Ones.pattern(batch), threads)
        .with(Reads::<PerCpu>::new(batch))
        .with(Reads::<Carry>::new(batch))
        .with(Reads::<Kernel>::new(batch))
        .with(Reads::<Atomic>::new(batch))
        .with(Reads::<Tree>::new(batch))
}

/// Runs additions; `next` says where in the table the thread is.
#[inline(always)]
pub(super) fn run(amounts: Amounts, operations: u64, next: &mut u64, add: impl Fn(i64)) {
    match amounts {
        Amounts::Ones => (0..operations).for_each(|_| add(1)),
        Amounts::Mixed => {
            for at in *next..*next + operations {
                add(MIXED[at as usize % MIXED.len()]);
            }
        }
    }
    *next += operations;
}

/// What so many operations of one thread come to.
pub(super) fn expected(amounts: Amounts, operations: u64) -> i64 {
    match amounts {
        Amounts::Ones => operations as i64,
        Amounts::Mixed => {
            let rounds = (operations / MIXED.len() as u64) as i64;
            let rest = &MIXED[..operations as usize % MIXED.len()];
            rounds * MIXED.iter().sum::<i64>() + rest.iter().sum::<i64>()
        }
    }
}

/// Whether a sum has grown by what was added.
pub(super) fn check(amounts: Amounts, operations: &[u64], grown: i64) -> Result<(), String> {
    let of_thread = |operations: &u64| expected(amounts, *operations);
    let expected: i64 = operations.iter().map(of_thread).sum();
    if grown == expected {
        Ok(())
    } else {
        Err(format!("{expected} were added, {grown} were counted"))
    }
}

/// A counter, made when its point begins, with what it held then: others of its name may have counted before.
struct Counter<W> {
    batch: u32,
    made: OnceLock<(W, i64)>,
}

impl<W: Way> Counter<W> {
    fn new(batch: u32) -> Self {
        Counter {
            batch,
            made: OnceLock::new(),
        }
    }

    fn get(&self) -> &(W, i64) {
        self.made.get_or_init(|| {
            let way = W::new(self.batch).expect("memory for a counter");
            let held = way.sum();
            (way, held)
        })
    }
}

/// Adding by a way.
struct Adds<W> {
    counter: Counter<W>,
    amounts: Amounts,
    next: PerThread<u64>,
}

impl<W: Way> Adds<W> {
    fn new(batch: u32, amounts: Amounts) -> Self {
        Adds {
            counter: Counter::new(batch),
            amounts,
            next: PerThread::new(),
        }
    }
}

impl<W: Way> Variant for Adds<W> {
    fn name(&self) -> &str {
        W::NAME
    }

    fn worker(&self, thread_index: usize, _threads: usize) -> Box<dyn Worker + '_> {
        Box::new(Add {
            way: &self.counter.get().0,
            amounts: self.amounts,
            next: self.next.lend(thread_index, || 0),
        })
    }

    fn check(&self, operations: &[u64]) -> Result<(), String> {
        let (way, held) = self.counter.get();
        check(self.amounts, operations, way.sum().wrapping_sub(*held))
    }
}

struct Add<'a, W> {
    way: &'a W,
    amounts: Amounts,
    next: Lent<'a, u64>,
}

impl<W: Way> Worker for Add<'_, W> {
    fn run(&mut self, operations: u64) {
        let handle = self.way.handle();
        run(self.amounts, operations, &mut self.next, |n| {
            W::add(handle, n);
        });
    }
}

/// Taking amounts from the table, and nothing else.
struct Loop;

impl Variant for Loop {
    fn name(&self) -> &str {
        "loop"
    }
    fn worker(&self, _thread_index: usize, _threads: usize) -> Box<dyn Worker + '_> {
        Box::new(Looping(0))
    }
}

struct Looping(u64);

impl Worker for Looping {
    fn run(&mut self, operations: u64) {
        run(Amounts::Mixed, operations, &mut self.0, |n| {
            black_box(n);
        });
    }
}

/// Reading by a way.
struct Reads<W> {
    counter: Counter<W>,
    way: PhantomData<W>,
}

/// What the counter holds meanwhile.
const HELD: i64 = 1_000_000;

impl<W: Way> Reads<W> {
    fn new(batch: u32) -> Self {
        Reads {
            counter: Counter::new(batch),
            way: PhantomData,
        }
    }
}

impl<W: Way> Variant for Reads<W> {
    fn name(&self) -> &str {
        W::NAME
    }

    fn worker(&self, thread_index: usize, _threads: usize) -> Box<dyn Worker + '_> {
        let (way, held) = self.counter.get();
        if thread_index == 0 && way.sum() == *held {
            W::add(way.handle(), HELD);
        }
        Box::new(Read { way, sum: 0 })
    }

    fn check(&self, _operations: &[u64]) -> Result<(), String> {
        let (way, held) = self.counter.get();
        let (read, sum) = (W::read(way.handle()), way.sum());
        if sum != held + HELD {
            return Err(format!("{HELD} were added, {} counted", sum - held));
        }
        match way.bound() {
            Some(bound) if read.abs_diff(sum) > bound => {
                Err(format!("{read} is read of {sum}, which is beyond {bound}"))
            }
            _ => Ok(()),
        }
    }
}

struct Read<'a, W> {
    way: &'a W,
    sum: i64,
}

impl<W: Way> Worker for Read<'_, W> {
    fn run(&mut self, operations: u64) {
        let handle = self.way.handle();
        for _ in 0..operations {
            self.sum = self.sum.wrapping_add(black_box(W::read(handle)));
        }
    }
}
