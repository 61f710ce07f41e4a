//! The columns: an operation, and the order in which counters are visited.

use countersink_percpu::local::LocalCounter;

use super::{HOT, LEN, STRIDE};

/// An operation of the table.
pub(super) trait Op: Send + Sync + 'static {
    /// What the column is called.
    const NAME: &'static str;
    /// By how much one operation raises the sum of all counters.
    const EFFECT: i64;
    /// Does it; what is returned is added up, so that nothing is optimised away.
    fn apply<W: LocalCounter>(counter: W) -> i64;
}

/// Adds 1.
#[derive(Debug)]
pub(super) struct Inc;
/// Adds 1234, as the seed does.
#[derive(Debug)]
pub(super) struct Add;
/// Adds 7 and returns the new value, as the seed does.
#[derive(Debug)]
pub(super) struct AddReturn;
/// Reads the value.
#[derive(Debug)]
pub(super) struct Read;

impl Op for Inc {
    const NAME: &'static str = "inc";
    const EFFECT: i64 = 1;
    #[inline(always)]
    fn apply<W: LocalCounter>(counter: W) -> i64 {
        counter.inc();
        0
    }
}

impl Op for Add {
    const NAME: &'static str = "add";
    const EFFECT: i64 = 1234;
    #[inline(always)]
    fn apply<W: LocalCounter>(counter: W) -> i64 {
        counter.add(1234);
        0
    }
}

impl Op for AddReturn {
    const NAME: &'static str = "add_return";
    const EFFECT: i64 = 7;
    #[inline(always)]
    fn apply<W: LocalCounter>(counter: W) -> i64 {
        counter.add_return(7)
    }
}

impl Op for Read {
    const NAME: &'static str = "read";
    const EFFECT: i64 = 0;
    #[inline(always)]
    fn apply<W: LocalCounter>(counter: W) -> i64 {
        counter.read()
    }
}

/// An order in which counters are visited: a position that moves on, and the index that it stands
/// for.
pub(super) trait Walk: Send + Sync + 'static {
    /// The index of the counter to visit.
    fn index(position: usize) -> usize;
    /// The next position.
    fn next(position: usize) -> usize;
}

/// The seed's stride through the whole array, which looks random.
#[derive(Debug)]
pub(super) struct Strided;
/// The same positions, of which the last bits choose one of 16 adjacent words.
#[derive(Debug)]
pub(super) struct StridedHot;
/// One counter again and again.
#[derive(Debug)]
pub(super) struct Same;
/// Each counter in turn.
#[derive(Debug)]
pub(super) struct InTurn;

impl Walk for Strided {
    #[inline(always)]
    fn index(position: usize) -> usize {
        position
    }
    #[inline(always)]
    fn next(position: usize) -> usize {
        (position + STRIDE) % LEN
    }
}

impl Walk for StridedHot {
    #[inline(always)]
    fn index(position: usize) -> usize {
        position % HOT
    }
    #[inline(always)]
    fn next(position: usize) -> usize {
        (position + STRIDE) % LEN
    }
}

impl Walk for Same {
    #[inline(always)]
    fn index(_: usize) -> usize {
        0
    }
    #[inline(always)]
    fn next(position: usize) -> usize {
        position
    }
}

impl Walk for InTurn {
    #[inline(always)]
    fn index(position: usize) -> usize {
        position
    }
    #[inline(always)]
    fn next(position: usize) -> usize {
        (position + 1) % HOT
    }
}
