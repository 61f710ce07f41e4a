//! Handles of words, and what can be done through them.
//!
//! Each operation is a short inline attempt above a cold function that repeats it, counts the
//! attempts, and ends on a lane with locked operations where no section can run.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{AcqRel, Acquire};
use core::sync::atomic::{AtomicI64, AtomicU64};

use crate::arch::{self, At, Attempt};
use crate::locked;
use crate::os::Place;
use crate::segment::{Lane, Segment};
use crate::wide;

/// After so many attempts in a row that did not commit, an operation completes on the shared lane.
///
/// Preemption aborts one in millions. A debugger that single-steps aborts every one.
const MOST_ATTEMPTS: u32 = 16;

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for i64 {}
}

/// What a word can hold: `u64` or `i64`.
pub trait Word: sealed::Sealed + Copy + Eq {
    /// Whether the smaller of two is found as signed.
    const SIGNED: bool;
    /// The bits.
    fn to_bits(self) -> u64;
    /// The value of the bits.
    fn from_bits(bits: u64) -> Self;
}

impl Word for u64 {
    const SIGNED: bool = false;
    #[inline(always)]
    fn to_bits(self) -> u64 {
        self
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits
    }
}

impl Word for i64 {
    const SIGNED: bool = true;
    #[inline(always)]
    fn to_bits(self) -> u64 {
        self as u64
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits as i64
    }
}

/// Repeats an operation after its first attempt, and ends it.
///
/// An attempt that did not commit has changed nothing, so the operation happens once.
#[cold]
#[inline(never)]
fn slow<R>(at: At, attempt: &dyn Fn() -> Attempt<R>, locked: &dyn Fn(*mut u64) -> R) -> R {
    let mut lane = Lane::Shared;
    for _ in 1..MOST_ATTEMPTS {
        match attempt() {
            Attempt::Done(result) => return result,
            Attempt::Aborted => {}
            Attempt::NoLane => match at.place() {
                Place::Section => {}
                Place::LockedLane(cpu) => {
                    lane = Lane::Cpu(cpu);
                    break;
                }
                Place::SharedLane => break,
            },
        }
    }
    // place() tells CPUs with a lane only.
    locked(at.in_lane(lane).unwrap_or(at.word))
}

/// An operation: the inline attempt, and a cold function for the rest, so that the caller pays no
/// register or stack for it.
macro_rules! operate {
    ($self:ident, $name:ident($($operand:ident: $type:ty = $value:expr),*) -> $result:ty) => {{
        #[cold]
        #[inline(never)]
        fn cold(at: At, $($operand: $type),*) -> $result {
            slow(
                at,
                // SAFETY: as below.
                &|| unsafe { arch::$name(at, $($operand),*) },
                // SAFETY: the same word in a lane that only locked operations write, see place().
                &|word| unsafe { locked::$name(word, $($operand),*) },
            )
        }
        $(let $operand: $type = $value;)*
        // SAFETY: what `At` asks for, promised to new().
        match unsafe { arch::$name($self.at, $($operand),*) } {
            Attempt::Done(result) => result,
            _ => cold($self.at, $($operand),*),
        }
    }};
}

/// The handle of one word: copy it freely, use it from any thread.
///
/// Operations without a result act on the word's value as a whole: the sum over the lanes. Those
/// that return or compare something see the value *in the lane they ran on*, which is the CPU's, or
/// the shared lane's; the next call may run on another.
///
/// A lane's value is not the word's: what was stored by [`exchange`](Self::exchange) or
/// [`compare_exchange`](Self::compare_exchange) is one lane's part of the sum.
///
/// Nothing here waits, allocates or makes a system call, but for a thread's first operation where
/// threads must still be registered, and for the `getcpu` of [`Mechanism::LockedLanes`]. All may be
/// called from a signal handler.
///
/// [`Mechanism::LockedLanes`]: crate::Mechanism::LockedLanes
pub struct Slot<'a, T = u64> {
    at: At,
    segment: PhantomData<(&'a Segment, T)>,
}

impl<'a, T: Word> Slot<'a, T> {
    /// # Safety
    /// `at` is as [`At`] asks for, for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn new(at: At) -> Self {
        Slot {
            at,
            segment: PhantomData,
        }
    }

    /// Adds 1, wrapping.
    #[inline(always)]
    pub fn inc(&self) {
        operate!(self, inc() -> ());
    }

    /// Adds, wrapping.
    #[inline(always)]
    pub fn add(&self, n: T) {
        operate!(self, add(n: u64 = n.to_bits()) -> ());
    }

    /// Adds, wrapping; whoever sees the sum with it sees what this thread wrote before.
    #[inline(always)]
    pub fn add_release(&self, n: T) {
        operate!(self, add_release(n: u64 = n.to_bits()) -> ());
    }

    /// Adds, wrapping, and returns the lane's new value.
    #[inline(always)]
    pub fn add_return(&self, n: T) -> T {
        T::from_bits(operate!(self, add_return(n: u64 = n.to_bits()) -> u64))
    }

    /// Stores `new` if the lane holds `old`, and returns `old`.
    ///
    /// # Errors
    /// The value that the lane held, if another; nothing is stored then. An attempt that was aborted
    /// is repeated, so a mismatch was really seen. After 16 of them in a row the lane is the shared
    /// one, so a loop that waits for a lane to hold something must take what it finds from the error,
    /// as any compare-exchange loop does.
    #[inline(always)]
    pub fn compare_exchange(&self, old: T, new: T) -> Result<T, T> {
        let held = operate!(
            self,
            compare_exchange(a: u64 = old.to_bits(), b: u64 = new.to_bits()) -> u64
        );
        let held = T::from_bits(held);
        if held == old { Ok(held) } else { Err(held) }
    }

    /// Stores a value and returns what the lane held.
    #[inline(always)]
    pub fn exchange(&self, new: T) -> T {
        T::from_bits(operate!(self, exchange(new: u64 = new.to_bits()) -> u64))
    }

    /// Stores the value if it is below the lane's; whether it did.
    ///
    /// Lanes begin at 0, so a minimum of `u64` would never be stored. For the smallest of values `v`,
    /// store the largest of `u64::MAX - v`, and read it with [`values`](Self::values):
    ///
    /// ```
    /// use countersink_percpu::Segment;
    ///
    /// let segment = Segment::private()?;
    /// let fastest = segment.slot::<u64>(0).expect("a word");
    /// for nanoseconds in [300, 20, 1000] {
    ///     fastest.store_max(u64::MAX - nanoseconds);
    /// }
    /// let smallest = fastest.values().max().map(|kept| u64::MAX - kept);
    /// assert_eq!(smallest, Some(20));
    /// # Ok::<(), countersink_percpu::SegmentError>(())
    /// ```
    #[inline(always)]
    pub fn store_min(&self, value: T) -> bool {
        let bits = value.to_bits();
        if T::SIGNED {
            (bits as i64) < operate!(self, store_min_signed(value: u64 = bits) -> u64) as i64
        } else {
            bits < operate!(self, store_min_unsigned(value: u64 = bits) -> u64)
        }
    }

    /// Stores the value if it is above the lane's; whether it did. The largest of all is that of
    /// [`values`](Self::values); their sum means nothing.
    #[inline(always)]
    pub fn store_max(&self, value: T) -> bool {
        let bits = value.to_bits();
        if T::SIGNED {
            (bits as i64) > operate!(self, store_max_signed(value: u64 = bits) -> u64) as i64
        } else {
            bits > operate!(self, store_max_unsigned(value: u64 = bits) -> u64)
        }
    }

    /// Adds if the guard is zero; whether it did.
    ///
    /// The guard is loaded, as an acquire, by the same attempt that adds. So once whoever raised it
    /// has called [`Fence::all_cpus`](crate::Fence::all_cpus), no CPU lane grows any more. On the
    /// shared lane, and on locked lanes, an add may be there for a moment and be taken back: raise the
    /// guard with `SeqCst` there, before reading the lanes.
    #[inline(always)]
    pub fn add_unless(&self, n: T, guard: &AtomicU64) -> bool {
        operate!(
            self,
            add_unless(n: u64 = n.to_bits(), guard: *const u64 = guard.as_ptr()) -> bool
        )
    }

    /// What one lane holds; `None` for a CPU without a lane.
    #[inline]
    pub fn load(&self, lane: Lane) -> Option<T> {
        let word = self.at.in_lane(lane)?;
        // SAFETY: a word of the segment, which is mapped as long as the handle lives; everyone
        // writes whole words. Acquire pairs with release commits.
        Some(T::from_bits(
            unsafe { AtomicU64::from_ptr(word) }.load(Acquire),
        ))
    }

    /// What each lane holds: the shared one and those of the CPUs, without the bias.
    #[inline]
    pub fn values(&self) -> impl Iterator<Item = T> {
        let slot = *self;
        slot.at.each_lane().filter_map(move |lane| slot.load(lane))
    }

    /// The value: the sum over all lanes and the bias, wrapping.
    ///
    /// A word that only goes up reads as a value that it had between the beginning and the end of
    /// the call. One that also goes down may read as a value that it never had.
    #[inline]
    pub fn sum(&self) -> T {
        let bias = self.bias().load(Acquire);
        T::from_bits(self.lanes_sum().wrapping_add(bias))
    }

    /// Makes the value another, and returns what it was: `replace(0)` is how a counter is reset. Others may add meanwhile, and nothing of it
    /// is lost: it is in the value returned or comes on top of the new one.
    pub fn replace(&self, value: T) -> T {
        let bias = self.bias();
        // The lanes are never written. Bias before lanes: a bias that was still in force when the
        // lanes were read makes a sum that was the word's value in between.
        let mut before = bias.load(Acquire);
        loop {
            let sum = self.lanes_sum().wrapping_add(before);
            let after = before.wrapping_sub(sum).wrapping_add(value.to_bits());
            match bias.compare_exchange_weak(before, after, AcqRel, Acquire) {
                Ok(_) => return T::from_bits(sum),
                Err(newer) => before = newer,
            }
        }
    }

    fn bias(&self) -> &AtomicU64 {
        let word = self.at.in_lane(Lane::Bias).unwrap_or(self.at.word);
        // SAFETY: as in load(); the bias lane is written by compare-exchange only.
        unsafe { AtomicU64::from_ptr(word) }
    }

    #[inline]
    fn lanes_sum(&self) -> u64 {
        self.values()
            .fold(0, |sum, value| sum.wrapping_add(value.to_bits()))
    }
}

/// The handle of several adjacent words.
pub struct Slots<'a, T = u64> {
    at: At,
    count: usize,
    segment: PhantomData<(&'a Segment, T)>,
}

impl<'a, T: Word> Slots<'a, T> {
    /// # Safety
    /// `at`, and the `count` words from there on, are as [`At`] asks for, for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn new(at: At, count: usize) -> Self {
        Slots {
            at,
            count,
            segment: PhantomData,
        }
    }

    /// The first of them.
    #[inline(always)]
    pub(crate) fn at(&self) -> At {
        self.at
    }

    /// The handle of one of the words; `None` from [`len`](Self::len) on.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<Slot<'a, T>> {
        // SAFETY: one of the words that new() was promised.
        (index < self.count).then(|| unsafe { Slot::new(self.at.add(index)) })
    }

    /// The handle of two of the words, `index` and the next, as a pair; `None` from the last on, or if
    /// the first is not at an even place in its lane.
    #[inline(always)]
    pub fn pair(&self, index: usize) -> Option<PairSlot<'a, T>> {
        let at = self.at.add(index);
        let fit = index < self.count && self.count - index >= 2 && is_even(at);
        // SAFETY: two of the words that new() was promised, aligned.
        fit.then(|| unsafe { PairSlot::new(at) })
    }

    /// How many words there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The handle of two adjacent words that change together.
///
/// As [`Slot`]; whoever loads both at one moment never sees half an operation.
pub struct PairSlot<'a, T = u64> {
    at: At,
    segment: PhantomData<(&'a Segment, T)>,
}

impl<'a, T: Word> PairSlot<'a, T> {
    /// # Safety
    /// `at` is as [`At`] asks for, for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn new(at: At) -> Self {
        PairSlot {
            at,
            segment: PhantomData,
        }
    }

    /// Adds to both words at once, each wrapping.
    #[inline(always)]
    pub fn add(&self, n: [T; 2]) {
        let [first, second] = n.map(T::to_bits);
        operate!(self, add_pair(a: u64 = first, b: u64 = second) -> ());
    }

    /// The handle of the first word.
    #[inline(always)]
    pub fn first(&self) -> Slot<'a, T> {
        // SAFETY: one of the two words that new() was promised.
        unsafe { Slot::new(self.at) }
    }

    /// Adds to the first word, unless that takes it further than `most` from the second; whether it did.
    /// `most` is at most 2^62.
    #[inline(always)]
    pub fn add_within(&self, n: T, most: u64) -> bool {
        operate!(self, add_within(n: u64 = n.to_bits(), most: u64 = most) -> bool)
    }

    /// The same, if the guard is also at most `limit`. The guard is loaded by the attempt that adds.
    #[inline(always)]
    pub fn add_within_at_most(&self, n: T, most: u64, guard: &AtomicI64, limit: i64) -> bool {
        let (guard, limit) = (guard.as_ptr().cast(), limit as u64);
        operate!(
            self,
            add_within_at_most(
                n: u64 = n.to_bits(), most: u64 = most, guard: *const u64 = guard, limit: u64 = limit
            ) -> bool
        )
    }

    /// The same, if the guard is also at least `limit`.
    #[inline(always)]
    pub fn add_within_at_least(&self, n: T, most: u64, guard: &AtomicI64, limit: i64) -> bool {
        let (guard, limit) = (guard.as_ptr().cast(), limit as u64);
        operate!(
            self,
            add_within_at_least(
                n: u64 = n.to_bits(), most: u64 = most, guard: *const u64 = guard, limit: u64 = limit
            ) -> bool
        )
    }

    /// One attempt at [`add_within`](Self::add_within); whether it added. Where it did not, that may as well be because
    /// the thread was preempted or has no lane: for callers who have a cold path anyway, which can tell.
    #[inline(always)]
    pub fn try_add_within(&self, n: T, most: u64) -> bool {
        // SAFETY: what `At` asks for, promised to new().
        let attempt = unsafe { arch::add_within(self.at, n.to_bits(), most) };
        matches!(attempt, Attempt::Done(true))
    }

    /// One attempt at [`add_within_at_most`](Self::add_within_at_most); as [`try_add_within`](Self::try_add_within).
    #[inline(always)]
    pub fn try_add_within_at_most(&self, n: T, most: u64, guard: &AtomicI64, limit: i64) -> bool {
        let (guard, limit) = (guard.as_ptr().cast::<u64>(), limit as u64);
        // SAFETY: as above.
        let attempt = unsafe { arch::add_within_at_most(self.at, n.to_bits(), most, guard, limit) };
        matches!(attempt, Attempt::Done(true))
    }

    /// One attempt at [`add_within_at_least`](Self::add_within_at_least); as [`try_add_within`](Self::try_add_within).
    #[inline(always)]
    pub fn try_add_within_at_least(&self, n: T, most: u64, guard: &AtomicI64, limit: i64) -> bool {
        let (guard, limit) = (guard.as_ptr().cast::<u64>(), limit as u64);
        // SAFETY: as above.
        let attempt =
            unsafe { arch::add_within_at_least(self.at, n.to_bits(), most, guard, limit) };
        matches!(attempt, Attempt::Done(true))
    }

    /// Stores `new` if the lane holds `old` in both words, and returns `old`.
    ///
    /// # Errors
    /// What the lane held, if it differed in either; nothing is stored then.
    #[inline(always)]
    pub fn compare_exchange(&self, old: [T; 2], new: [T; 2]) -> Result<[T; 2], [T; 2]> {
        let ([a, b], [c, d]) = (old.map(T::to_bits), new.map(T::to_bits));
        let held = operate!(
            self,
            compare_exchange_pair(w: u64 = a, x: u64 = b, y: u64 = c, z: u64 = d) -> [u64; 2]
        );
        let held = held.map(T::from_bits);
        if held == old { Ok(held) } else { Err(held) }
    }

    /// What one lane holds, both words at one moment; `None` for a CPU without a lane.
    #[inline]
    pub fn load(&self, lane: Lane) -> Option<[T; 2]> {
        let word = self.at.in_lane(lane)?;
        // SAFETY: a pair of the segment, which is mapped as long as the handle lives.
        Some(unsafe { wide::load(word) }.map(T::from_bits))
    }

    /// What each lane holds: the shared one and those of the CPUs, without the bias.
    #[inline]
    pub fn values(&self) -> impl Iterator<Item = [T; 2]> {
        let pair = *self;
        pair.at.each_lane().filter_map(move |lane| pair.load(lane))
    }

    /// How many lanes [`values`](Self::values) tells.
    #[inline(always)]
    pub fn lanes(&self) -> u64 {
        u64::from(self.at.cpus()) + 1
    }

    /// The values: the sums over all lanes and the bias, wrapping. The two words of each lane belong
    /// together.
    #[inline]
    pub fn sum(&self) -> [T; 2] {
        let bias = self.bias();
        self.lanes_sum(bias).map(T::from_bits)
    }

    /// Makes the values others, and returns what they were; both at once. As [`Slot::replace`].
    pub fn replace(&self, values: [T; 2]) -> [T; 2] {
        let values = values.map(T::to_bits);
        // As in Slot::replace(): bias before lanes, and the lanes are never written.
        let mut before = self.bias();
        loop {
            let sum = self.lanes_sum(before);
            let after: [u64; 2] =
                core::array::from_fn(|i| before[i].wrapping_sub(sum[i]).wrapping_add(values[i]));
            match self.exchange_locked(Lane::Bias, before, after) {
                Ok(_) => return sum.map(T::from_bits),
                Err(newer) => before = newer,
            }
        }
    }

    /// Stores `new` in the bias lane if it holds `old` in both words, and returns `old`: for protocols
    /// that keep something there which is not added to a sum.
    ///
    /// # Errors
    /// What the bias lane held, if it differed in either; nothing is stored then.
    pub fn compare_exchange_bias(&self, old: [T; 2], new: [T; 2]) -> Result<[T; 2], [T; 2]> {
        self.compare_exchange_locked(Lane::Bias, old, new)
    }

    /// The same in the shared lane, whatever lane this thread counts on.
    ///
    /// # Errors
    /// What the shared lane held, if it differed in either; nothing is stored then.
    pub fn compare_exchange_shared(&self, old: [T; 2], new: [T; 2]) -> Result<[T; 2], [T; 2]> {
        self.compare_exchange_locked(Lane::Shared, old, new)
    }

    /// The same in any lane, by a locked instruction. On a CPU's lane, only for words that no operation of a handle works
    /// on: sections lock nothing, so what they store and this would be lost to each other. A lane that
    /// there is not is the shared one.
    ///
    /// # Errors
    /// What the lane held, if it differed in either; nothing is stored then.
    pub fn compare_exchange_locked(
        &self,
        lane: Lane,
        old: [T; 2],
        new: [T; 2],
    ) -> Result<[T; 2], [T; 2]> {
        let exchanged = self.exchange_locked(lane, old.map(T::to_bits), new.map(T::to_bits));
        match exchanged {
            Ok(held) => Ok(held.map(T::from_bits)),
            Err(held) => Err(held.map(T::from_bits)),
        }
    }

    fn exchange_locked(
        &self,
        lane: Lane,
        old: [u64; 2],
        new: [u64; 2],
    ) -> Result<[u64; 2], [u64; 2]> {
        let lane = self.at.in_lane(lane).or(self.at.in_lane(Lane::Shared));
        let word = lane.unwrap_or(self.at.word);
        // SAFETY: a pair of the segment, which is mapped as long as the handle lives.
        let held = unsafe { wide::compare_exchange(word, old, new) };
        if held == old { Ok(held) } else { Err(held) }
    }

    /// The two words in the bias lane, as atomics: for protocols that keep something there which is not added
    /// to a sum. A 16-byte exchange of the pair and operations on one of its words may be mixed.
    #[inline(always)]
    pub fn bias_words(&self) -> [&'a AtomicI64; 2] {
        let word = self.at.in_lane(Lane::Bias).unwrap_or(self.at.word);
        // SAFETY: a pair of the segment, which is mapped for 'a; the bias lane is written by locked
        // instructions only. i64 and u64 have one layout.
        [word, word.wrapping_add(1)].map(|word| unsafe { AtomicI64::from_ptr(word.cast()) })
    }

    fn bias(&self) -> [u64; 2] {
        self.load(Lane::Bias)
            .map_or([0; 2], |pair| pair.map(T::to_bits))
    }

    #[inline]
    fn lanes_sum(&self, bias: [u64; 2]) -> [u64; 2] {
        self.values().fold(bias, |[a, b], pair| {
            let [x, y] = pair.map(T::to_bits);
            [a.wrapping_add(x), b.wrapping_add(y)]
        })
    }
}

impl<'a> PairSlot<'a, u64> {
    /// The same words as signed numbers.
    #[inline(always)]
    pub fn signed(&self) -> PairSlot<'a, i64> {
        PairSlot {
            at: self.at,
            segment: PhantomData,
        }
    }
}

/// Whether two words from here on can be a pair.
#[inline(always)]
fn is_even(at: At) -> bool {
    at.word.addr().is_multiple_of(2 * size_of::<u64>())
}

/// What the handles have in common.
macro_rules! handle {
    ($handle:ident) => {
        impl<T> Clone for $handle<'_, T> {
            #[inline(always)]
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $handle<'_, T> {}

        impl<T> core::fmt::Debug for $handle<'_, T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($handle))
                    .field("at", &self.at)
                    .finish()
            }
        }

        // SAFETY: every access to the word is an operation that is exact between threads, and the
        // segment is Sync.
        unsafe impl<T> Send for $handle<'_, T> {}
        // SAFETY: as above.
        unsafe impl<T> Sync for $handle<'_, T> {}
    };
}

handle!(Slot);
handle!(Slots);
handle!(PairSlot);
