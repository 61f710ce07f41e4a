//! What is measured: an [`Experiment`] has [`Point`]s, and at each point several [`Variant`]s of
//! the same operation compete.
//!
//! Lifetimes are laid out so that memory lives where it has to:
//! - a **variant** lives as long as its point, across all samples; arrays that samples share belong
//!   in it (in a [`PerThread`] where each thread has its own), or in the experiment;
//! - a **worker** lives for one sample on one thread. It is created on that thread, after pinning,
//!   so memory that it touches first is local to the CPU, and it need not be `Send`. It borrows
//!   from its variant.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A named set of points.
pub trait Experiment {
    /// A short name, such as `local`.
    fn name(&self) -> &str;

    /// The points, in the order in which they are measured. Each is dropped, with its variants,
    /// before the next one is measured; variants should allocate in [`Variant::worker`], so that
    /// the memory of all points is not held at once.
    fn points(&self) -> Vec<Point<'_>>;

    /// What a reader must know to judge the numbers, beyond the machine; for example the mechanism
    /// that was used, and why. Goes into the machine's conditions.
    fn conditions(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
}

/// How samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// For the plan's sample length.
    Timed,
    /// For exactly so many operations, by one thread. Only for reproducing a published method:
    /// the sample's length then depends on what is measured.
    Fixed(u64),
}

/// One place at which variants are measured side by side.
pub struct Point<'a> {
    /// The operation, such as `inc`.
    pub op: String,
    /// How memory is walked, such as `strided` or `shared`.
    pub pattern: String,
    /// How many threads do it at the same time.
    pub threads: usize,
    /// How samples are taken.
    pub mode: Mode,
    /// Whether variants note something of each sample themselves: then none is taken again or besides.
    pub noted: bool,
    /// The competitors. Their names must differ.
    pub variants: Vec<Box<dyn Variant + 'a>>,
}

impl<'a> Point<'a> {
    /// A timed point without variants.
    pub fn new(op: &str, pattern: &str, threads: usize) -> Point<'a> {
        Point {
            op: op.to_owned(),
            pattern: pattern.to_owned(),
            threads,
            mode: Mode::Timed,
            noted: false,
            variants: Vec::new(),
        }
    }

    /// Adds a competitor.
    pub fn with(mut self, variant: impl Variant + 'a) -> Point<'a> {
        self.variants.push(Box::new(variant));
        self
    }

    /// Says that variants note something of each sample, in the order of the schedule. Disturbed samples are then marked, but not
    /// taken again, and no variant is measured against itself.
    pub fn noted(mut self) -> Point<'a> {
        self.noted = true;
        self
    }

    /// Makes each sample exactly so many operations.
    pub fn fixed(mut self, operations: u64) -> Point<'a> {
        self.mode = Mode::Fixed(operations);
        self
    }

    /// What progress displays call the point.
    pub fn label(&self) -> String {
        let s = if self.threads == 1 { "" } else { "s" };
        format!("{} {}, {} thread{s}", self.op, self.pattern, self.threads)
    }
}

impl fmt::Debug for Point<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.variants.iter().map(|v| v.name()).collect();
        f.debug_struct("Point")
            .field("label", &self.label())
            .field("mode", &self.mode)
            .field("variants", &names)
            .finish()
    }
}

/// One way to do an operation.
pub trait Variant: Sync {
    /// A short name, such as `percpu`.
    fn name(&self) -> &str;

    /// The worker of one of `threads` threads, for one sample. Called on that thread, already
    /// pinned.
    fn worker(&self, thread_index: usize, threads: usize) -> Box<dyn Worker + '_>;

    /// Looks whether every operation had its effect: `operations` has, for each thread, all that
    /// [`Worker::run`] was asked for since the point began, untimed ones included. Called once, at
    /// the end of the point, when no worker is left.
    ///
    /// # Errors
    /// What is wrong, in words. The point's numbers are then thrown away.
    fn check(&self, operations: &[u64]) -> Result<(), String> {
        let _ = operations;
        Ok(())
    }
}

/// One thread's part in one sample.
pub trait Worker {
    /// Brings memory into the state in which the sample should find it: walk an array in full, for
    /// example. Not timed. Must not count operations.
    fn warm(&mut self) {}

    /// Does exactly so many operations, in a loop of its own, with its state in registers. This
    /// call is made once per batch, so its cost is spread over many operations. Successive calls
    /// continue where the last one ended.
    fn run(&mut self, operations: u64);
}

/// Memory of each thread, kept between samples. It lives in a [`Variant`] and is lent to the
/// [`Worker`] of the thread for one sample.
///
/// ```
/// use countersink_harness::variant::{Lent, PerThread, Variant, Worker};
///
/// struct Plain {
///     arrays: PerThread<Vec<u64>>,
/// }
///
/// struct Walk<'a> {
///     array: Lent<'a, Vec<u64>>,
///     next: usize,
/// }
///
/// impl Variant for Plain {
///     fn name(&self) -> &str {
///         "plain"
///     }
///     fn worker(&self, thread_index: usize, _threads: usize) -> Box<dyn Worker + '_> {
///         let array = self.arrays.lend(thread_index, || vec![0; 1024]);
///         Box::new(Walk { array, next: 0 })
///     }
///     fn check(&self, operations: &[u64]) -> Result<(), String> {
///         let mut counted = 0;
///         self.arrays.visit(|_thread, array| counted += array.iter().sum::<u64>());
///         let asked: u64 = operations.iter().sum();
///         if counted == asked { Ok(()) } else { Err(format!("{counted} of {asked}")) }
///     }
/// }
///
/// impl Worker for Walk<'_> {
///     fn run(&mut self, operations: u64) {
///         let (array, mut next) = (&mut self.array[..], self.next);
///         for _ in 0..operations {
///             array[next] += 1;
///             next = (next + 1) % 1024;
///         }
///         self.next = next;
///     }
/// }
/// # let plain = Plain { arrays: PerThread::new() };
/// # plain.worker(0, 1).run(3000);
/// # plain.worker(0, 1).run(1);
/// # plain.check(&[3001]).unwrap();
/// ```
#[derive(Debug)]
pub struct PerThread<T> {
    /// What is not lent at the moment, with its thread's index.
    home: Mutex<Vec<(usize, T)>>,
}

impl<T> PerThread<T> {
    /// No memory yet.
    pub fn new() -> PerThread<T> {
        PerThread {
            home: Mutex::new(Vec::new()),
        }
    }

    /// Lends the memory of a thread, made on first use. Call it from [`Variant::worker`], so that
    /// `make` runs on the pinned thread.
    pub fn lend(&self, thread_index: usize, make: impl FnOnce() -> T) -> Lent<'_, T> {
        let kept = {
            let mut home = self.lock();
            let at = home.iter().position(|(index, _)| *index == thread_index);
            at.map(|at| home.swap_remove(at).1)
        };
        Lent {
            value: Some(kept.unwrap_or_else(make)),
            thread_index,
            owner: self,
        }
    }

    /// Shows everything that is not lent, in no order: index and memory of each thread.
    pub fn visit(&self, mut look: impl FnMut(usize, &mut T)) {
        for (index, value) in self.lock().iter_mut() {
            look(*index, value);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(usize, T)>> {
        // A panic elsewhere cannot leave the list half changed.
        self.home.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for PerThread<T> {
    fn default() -> PerThread<T> {
        PerThread::new()
    }
}

/// Memory lent by a [`PerThread`]; goes back when dropped.
#[derive(Debug)]
pub struct Lent<'a, T> {
    /// `None` only while being dropped.
    value: Option<T>,
    thread_index: usize,
    owner: &'a PerThread<T>,
}

const HELD: &str = "the value is held until the drop";

impl<T> Deref for Lent<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect(HELD)
    }
}

impl<T> DerefMut for Lent<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect(HELD)
    }
}

impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.owner.lock().push((self.thread_index, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_made_once_and_kept() {
        let memory = PerThread::new();
        let mut made = 0;
        for _ in 0..3 {
            let mut a = memory.lend(0, || {
                made += 1;
                vec![0_u64; 4]
            });
            let _other_thread = memory.lend(1, || vec![7; 4]);
            a[2] += 1;
        }
        assert_eq!(made, 1);
        let mut seen = Vec::new();
        memory.visit(|index, array| seen.push((index, array.clone())));
        seen.sort();
        assert_eq!(seen, [(0, vec![0, 0, 3, 0]), (1, vec![7; 4])]);
    }

    #[test]
    fn memory_lent_twice_at_once_is_not_lost() {
        let memory = PerThread::new();
        {
            let mut a = memory.lend(0, || 0_u64);
            let mut b = memory.lend(0, || 0_u64);
            *a += 1;
            *b += 2;
        }
        let mut sum = 0;
        memory.visit(|_, n| sum += *n);
        assert_eq!(sum, 3);
    }
}
