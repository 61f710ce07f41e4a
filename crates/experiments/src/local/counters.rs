//! Where the counters of each way lie: the memory that the experiment walks.

use countersink_percpu::local::{LocalCounter, PerCpu};
use countersink_percpu::{Segment, Slots, WORDS};

/// Counters of one way, so many that `N` tells; a power of two.
pub(super) trait Counters: Sized {
    /// What a loop holds in registers while it walks them.
    type View<'a>: View
    where
        Self: 'a;

    /// Zeroed counters whose pages are there already. Called by the thread that will own them.
    fn new() -> Result<Self, String>;

    /// The counters, to walk.
    fn view(&self) -> Self::View<'_>;

    /// Brings all of them into the cache, as far as they fit.
    fn warm(&self) {
        let view = self.view();
        let sum = (0..Self::COUNT).fold(0_i64, |sum, i| sum.wrapping_add(view.at(i).read()));
        std::hint::black_box(sum);
    }

    /// The sum over all of them.
    fn sum(&self) -> i64 {
        let view = self.view();
        (0..Self::COUNT).fold(0, |sum, i| sum.wrapping_add(view.at(i).read()))
    }

    /// How many there are.
    const COUNT: usize;
}

/// See [`Counters::View`].
pub(super) trait View: Copy {
    /// The way.
    type Way: LocalCounter;

    /// The handle of one counter; the index wraps at the end.
    fn at(self, index: usize) -> Self::Way;
}

/// Writes a counter, so that its page is there before anything is timed: zeros may come as pages that are made when they are
/// written first.
fn write<W: LocalCounter>(counter: &W) {
    counter.set(std::hint::black_box(counter.read()));
}

/// Counters in the thread's own memory, one after the other.
#[derive(Debug)]
pub(super) struct Packed<W, const N: usize>(Box<[W; N]>);

impl<W: LocalCounter + Default, const N: usize> Counters for Packed<W, N> {
    type View<'a>
        = &'a [W; N]
    where
        W: 'a;

    fn new() -> Result<Self, String> {
        let counters: Box<[W]> = std::iter::repeat_with(W::default).take(N).collect();
        counters.iter().for_each(write);
        match counters.try_into() {
            Ok(array) => Ok(Packed(array)),
            Err(_) => Err("an array of another length".to_owned()),
        }
    }

    #[inline(always)]
    fn view(&self) -> &[W; N] {
        &self.0
    }

    const COUNT: usize = N;
}

impl<'a, W: LocalCounter, const N: usize> View for &'a [W; N] {
    type Way = &'a W;

    #[inline(always)]
    fn at(self, index: usize) -> &'a W {
        &self[index % N]
    }
}

/// Counters in the thread's own memory, each on a cache line of its own.
#[derive(Debug)]
pub(super) struct Spread<W, const N: usize>(Packed<Line<W>, N>);

/// A counter that fills a cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Line<W>(W);

/// See [`Spread`].
#[derive(Debug)]
pub(super) struct SpreadView<'a, W, const N: usize>(&'a [Line<W>; N]);

impl<W, const N: usize> Clone for SpreadView<'_, W, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<W, const N: usize> Copy for SpreadView<'_, W, N> {}

impl<W: LocalCounter + Default, const N: usize> Counters for Spread<W, N> {
    type View<'a>
        = SpreadView<'a, W, N>
    where
        W: 'a;

    fn new() -> Result<Self, String> {
        let lines: Box<[Line<W>]> = std::iter::repeat_with(Line::default).take(N).collect();
        lines.iter().for_each(|line| write(&line.0));
        match lines.try_into() {
            Ok(array) => Ok(Spread(Packed(array))),
            Err(_) => Err("an array of another length".to_owned()),
        }
    }

    #[inline(always)]
    fn view(&self) -> SpreadView<'_, W, N> {
        SpreadView(&self.0.0)
    }

    const COUNT: usize = N;
}

impl<'a, W: LocalCounter, const N: usize> View for SpreadView<'a, W, N> {
    type Way = &'a W;

    #[inline(always)]
    fn at(self, index: usize) -> &'a W {
        &self.0[index % N].0
    }
}

/// Counters in lanes, `SPACING` words apart: within one segment.
#[derive(Debug)]
pub(super) struct InLanes<const N: usize, const SPACING: usize>(Segment);

/// See [`InLanes`].
#[derive(Clone, Copy, Debug)]
pub(super) struct LanesView<'a, const N: usize, const SPACING: usize>(Slots<'a, i64>);

impl<const N: usize, const SPACING: usize> Counters for InLanes<N, SPACING> {
    type View<'a> = LanesView<'a, N, SPACING>;

    fn new() -> Result<Self, String> {
        const { assert!(N * SPACING <= WORDS) };
        let segment = Segment::private().map_err(|error| error.to_string())?;
        Ok(InLanes(segment))
    }

    #[inline(always)]
    fn view(&self) -> Self::View<'_> {
        // Checked when the type was made.
        LanesView(
            self.0
                .slots(0, N * SPACING)
                .expect("the words fit a segment"),
        )
    }

    const COUNT: usize = N;
}

impl<'a, const N: usize, const SPACING: usize> View for LanesView<'a, N, SPACING> {
    type Way = PerCpu<'a>;

    #[inline(always)]
    fn at(self, index: usize) -> PerCpu<'a> {
        PerCpu(
            self.0
                .get(index % N * SPACING)
                .expect("an index below the count"),
        )
    }
}

/// Counters in lanes, more than a segment holds.
#[derive(Debug)]
pub(super) struct InSegments<const N: usize>(Vec<Segment>);

/// See [`InSegments`].
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentsView<'a, const N: usize>(&'a [Segment]);

impl<const N: usize> Counters for InSegments<N> {
    type View<'a> = SegmentsView<'a, N>;

    /// Touches the lane of the CPU that the thread is on, and of all others for reading.
    fn new() -> Result<Self, String> {
        let segments = (0..N.div_ceil(WORDS)).map(|_| Segment::private());
        let segments: Result<Vec<_>, _> = segments.collect();
        let counters = InSegments(segments.map_err(|error| error.to_string())?);
        let view: SegmentsView<'_, N> = counters.view();
        (0..N).for_each(|index| view.at(index).add(0));
        Ok(counters)
    }

    #[inline(always)]
    fn view(&self) -> SegmentsView<'_, N> {
        SegmentsView(&self.0)
    }

    const COUNT: usize = N;
}

impl<'a, const N: usize> View for SegmentsView<'a, N> {
    type Way = PerCpu<'a>;

    #[inline(always)]
    fn at(self, index: usize) -> PerCpu<'a> {
        let index = index % N;
        let slot = self.0[index / WORDS].slot(index % WORDS);
        PerCpu(slot.expect("an index below the count"))
    }
}

/// What so many counters of the percpu way take in all lanes, in bytes of address space.
pub(super) fn percpu_bytes(count: usize) -> usize {
    let segment = Segment::bytes(countersink_percpu::choice().cpus).unwrap_or(usize::MAX);
    segment.saturating_mul(count.div_ceil(WORDS))
}
