//! Memory in lanes: one for each possible CPU, and two more.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ptr::NonNull;
use std::io;

use crate::arch::{At, closed_area};
use crate::mechanism::{Mechanism, choice};
use crate::os::{Mapping, Place, place_in_locked_lanes, place_in_sections};

use crate::slot::{PairSlot, Slot, Slots, Word};

/// The distance from one lane to the next, in bytes. Known to the assembly as a shift by 16.
pub const STRIDE: usize = 1 << 16;

/// The words of a lane.
pub const WORDS: usize = STRIDE / size_of::<u64>();

/// The lanes before those of the CPUs.
const OTHER_LANES: usize = 2;

/// One of a segment's lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Written with locked operations, by threads that cannot use a CPU lane.
    Shared,
    /// What is added to every sum; written when a word is replaced, by nothing else.
    Bias,
    /// A CPU's own.
    Cpu(u32),
}

impl At {
    /// How many CPU lanes there are.
    #[inline(always)]
    pub(crate) fn cpus(self) -> u32 {
        self.lanes() & COUNT
    }

    /// The word's address in a lane; `None` for a CPU without one.
    #[inline]
    pub(crate) fn in_lane(self, lane: Lane) -> Option<*mut u64> {
        let word = self.word.cast::<u8>();
        let word = match lane {
            Lane::Shared => word.wrapping_sub(OTHER_LANES * STRIDE),
            Lane::Bias => word.wrapping_sub(STRIDE),
            Lane::Cpu(cpu) if cpu < self.cpus() => word.wrapping_add(cpu as usize * STRIDE),
            Lane::Cpu(_) => return None,
        };
        Some(word.cast())
    }

    /// The lanes whose sum, with the bias, is a word's value.
    #[inline]
    pub(crate) fn each_lane(self) -> impl Iterator<Item = Lane> {
        core::iter::once(Lane::Shared).chain((0..self.cpus()).map(Lane::Cpu))
    }

    /// Where this thread operates that found no lane in a section.
    pub(crate) fn place(self) -> Place {
        match self.lanes() & !COUNT {
            SECTIONS => place_in_sections(choice(), self.cpus()),
            LOCKED => place_in_locked_lanes(self.cpus()),
            _ => Place::SharedLane,
        }
    }
}

/// One mapping of all lanes, at a constant stride.
///
/// ```text
/// 0        shared lane      8,192 words of 8 bytes
/// 64 KiB   bias lane
/// 128 KiB  CPU 0
/// 192 KiB  CPU 1 ...        up to the largest possible CPU number
/// ```
///
/// A word has one place in every lane; its value is the sum over them. Lanes never share a page,
/// and memory is used for pages that were touched only.
///
/// # Examples
///
/// ```
/// use countersink_percpu::Segment;
///
/// let segment = Segment::private()?;
/// let requests = segment.slot::<u64>(0).expect("a segment has 8,192 words");
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| (0..1000).for_each(|_| requests.inc()));
///     }
/// });
/// assert_eq!(requests.sum(), 4000);
/// # Ok::<(), countersink_percpu::SegmentError>(())
/// ```
#[derive(Debug)]
pub struct Segment {
    mapping: Mapping,
    lanes: Lanes,
}

/// A [`Segment`] in memory that somebody else keeps for `'a`. Copy it freely.
#[derive(Clone, Copy, Debug)]
pub struct SegmentRef<'a> {
    start: NonNull<u8>,
    lanes: Lanes,
    memory: PhantomData<&'a Segment>,
}

// SAFETY: what can be reached through it are handles, which may be used from any thread.
unsafe impl Send for SegmentRef<'_> {}
// SAFETY: as above.
unsafe impl Sync for SegmentRef<'_> {}

/// What handles carry besides the word; see [`At`].
#[derive(Clone, Copy, Debug)]
struct Lanes {
    mechanism: Mechanism,
    area: i32,
    lanes: u32,
}

/// The part of a handle's lane count that is the count. The rest says who writes the CPU lanes.
/// Handles of the last two carry an area in which every thread is unregistered, with a CPU number
/// above any count, so that no section runs through them.
const COUNT: u32 = (1 << 30) - 1;
/// Sections.
const SECTIONS: u32 = 0;
/// Locked operations.
const LOCKED: u32 = 1 << 30;
/// Others than this process, which has the shared lane only.
const SHARED_ONLY: u32 = 1 << 31;

/// More CPUs than any kernel knows.
#[cfg(unix)]
const MOST_CPUS: u32 = 1 << 20;

impl Segment {
    /// Memory of this process; a forked child gets a copy and counts by itself.
    ///
    /// # Errors
    /// [`SegmentError::Memory`], for want of address space.
    pub fn private() -> Result<Self, SegmentError> {
        let choice = choice();
        let mapping = Mapping::private(Self::bytes(choice.cpus)?)?;
        Ok(Self::new(mapping, choice.cpus, choice.mechanism))
    }

    /// Memory of this process with lanes for locked operations, whatever the process could do: what
    /// counting costs where there are no sections.
    ///
    /// # Errors
    /// As [`private`](Self::private).
    pub fn private_locked() -> Result<Self, SegmentError> {
        let choice = choice();
        let mechanism = match choice.mechanism {
            Mechanism::Rseq => Mechanism::LockedLanes,
            locked => locked,
        };
        let mapping = Mapping::private(Self::bytes(choice.cpus)?)?;
        Ok(Self::new(mapping, choice.cpus, mechanism))
    }

    /// Memory that children forked later share, and count in together. Linux only.
    ///
    /// # Errors
    /// [`SegmentError::Memory`], for want of address space or where the system has no such memory.
    pub fn shared() -> Result<Self, SegmentError> {
        let choice = choice();
        let mapping = Mapping::shared(Self::bytes(choice.cpus)?)?;
        Ok(Self::new(mapping, choice.cpus, choice.mechanism))
    }

    /// Memory of a file or memfd from `offset` on, for whoever maps it. Linux only.
    ///
    /// `cpus` and `mechanism` are those of whoever laid out the file; all that map it must agree on
    /// them. A process that cannot use the mechanism counts on the shared lane, and so does a thread
    /// on a CPU beyond `cpus`. Whoever can make the
    /// file shorter can kill this process; seal a memfd against it.
    ///
    /// # Errors
    /// [`SegmentError::Memory`] if the file is too short or cannot be mapped;
    /// [`SegmentError::Offset`] if `offset` is not a multiple of [`STRIDE`];
    /// [`SegmentError::Cpus`] if there cannot be so many CPUs.
    #[cfg(unix)]
    pub fn of_fd(
        fd: std::os::fd::BorrowedFd<'_>,
        offset: u64,
        cpus: u32,
        mechanism: Mechanism,
    ) -> Result<Self, SegmentError> {
        if !offset.is_multiple_of(STRIDE as u64) {
            return Err(SegmentError::Offset(offset));
        }
        if cpus > MOST_CPUS {
            return Err(SegmentError::Cpus(cpus));
        }
        let mapping = Mapping::of_fd(Self::bytes(cpus)?, fd, offset)?;
        Ok(Self::new(mapping, cpus, mechanism))
    }

    fn new(mapping: Mapping, cpus: u32, mechanism: Mechanism) -> Self {
        Segment {
            mapping,
            lanes: Lanes::new(cpus, mechanism),
        }
    }

    /// How many bytes a segment with lanes for `cpus` CPUs takes: an odd number of lanes.
    ///
    /// With an even number, segments that lie one behind the other, as the kernel maps them, would put
    /// the lanes of one CPU into half of a TLB's sets or fewer, and a walk through many segments would
    /// wait for page tables. A lane that nobody touches costs address space only.
    ///
    /// # Errors
    /// [`SegmentError::Memory`] where that is more than an address can count.
    pub fn bytes(cpus: u32) -> Result<usize, SegmentError> {
        usize::try_from(cpus)
            .ok()
            .and_then(|cpus| (cpus.checked_add(OTHER_LANES)? | 1).checked_mul(STRIDE))
            .filter(|bytes| isize::try_from(*bytes).is_ok())
            .ok_or_else(|| SegmentError::Memory(io::ErrorKind::OutOfMemory.into()))
    }

    /// How many CPU lanes it has.
    pub fn cpus(&self) -> u32 {
        self.by_ref().cpus()
    }

    /// What writes its CPU lanes.
    pub fn mechanism(&self) -> Mechanism {
        self.by_ref().mechanism()
    }

    /// The handle of a word; `None` from [`WORDS`] on.
    #[inline]
    pub fn slot<T: Word>(&self, index: usize) -> Option<Slot<'_, T>> {
        self.by_ref().slot(index)
    }

    /// The handle of the words `2 * index` and `2 * index + 1` as a pair; `None` beyond the last. They
    /// are the words that [`slot`](Self::slot) names, and nothing keeps you from naming a word twice.
    #[inline]
    pub fn pair<T: Word>(&self, index: usize) -> Option<PairSlot<'_, T>> {
        self.by_ref().pair(index)
    }

    /// The handle of `count` words from `first` on; `None` if they are not all below [`WORDS`].
    #[inline]
    pub fn slots<T: Word>(&self, first: usize, count: usize) -> Option<Slots<'_, T>> {
        self.by_ref().slots(first, count)
    }

    /// Where the mapping starts.
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.mapping.start()
    }

    /// The same without the memory.
    #[inline]
    pub fn by_ref(&self) -> SegmentRef<'_> {
        SegmentRef {
            start: self.mapping.start(),
            lanes: self.lanes,
            memory: PhantomData,
        }
    }
}

impl<'a> SegmentRef<'a> {
    /// A segment in memory that is there already, such as a part of a larger mapping.
    ///
    /// # Safety
    /// From `start` on, a multiple of 64, there are [`Segment::bytes`] for so many CPUs, readable and
    /// writable for `'a`. Everyone who writes there does it through segments with this
    /// number of CPUs and this mechanism; `cpus` is at least 1 and below 2^20.
    pub unsafe fn new(start: NonNull<u8>, cpus: u32, mechanism: Mechanism) -> Self {
        SegmentRef {
            start,
            lanes: Lanes::new(cpus, mechanism),
            memory: PhantomData,
        }
    }

    /// How many CPU lanes it has.
    pub fn cpus(self) -> u32 {
        self.lanes.lanes & COUNT
    }

    /// What writes its CPU lanes.
    pub fn mechanism(self) -> Mechanism {
        self.lanes.mechanism
    }

    /// As [`Segment::slot`].
    #[inline]
    pub fn slot<T: Word>(self, index: usize) -> Option<Slot<'a, T>> {
        // SAFETY: the word is one of this segment's, and the handle lives as long as the memory.
        (index < WORDS).then(|| unsafe { Slot::new(self.at(index)) })
    }

    /// As [`Segment::pair`].
    #[inline]
    pub fn pair<T: Word>(self, index: usize) -> Option<PairSlot<'a, T>> {
        // SAFETY: as above; lanes are aligned, and the first word's index is even.
        (index < WORDS / 2).then(|| unsafe { PairSlot::new(self.at(2 * index)) })
    }

    /// As [`Segment::slots`].
    #[inline]
    pub fn slots<T: Word>(self, first: usize, count: usize) -> Option<Slots<'a, T>> {
        let fit = first.checked_add(count).is_some_and(|end| end <= WORDS);
        // SAFETY: as above, for all of the words.
        fit.then(|| unsafe { Slots::new(self.at(first), count) })
    }

    #[inline(always)]
    fn at(self, index: usize) -> At {
        let offset = OTHER_LANES * STRIDE + index * size_of::<u64>();
        let word = self.start.as_ptr().wrapping_add(offset).cast();
        At::new(word, self.lanes.area, self.lanes.lanes)
    }
}

impl Lanes {
    fn new(cpus: u32, mechanism: Mechanism) -> Self {
        let own = choice();
        let (area, writer) = match mechanism {
            Mechanism::Rseq if own.mechanism == Mechanism::Rseq => (own.area(), SECTIONS),
            Mechanism::Rseq => (closed_area(), SHARED_ONLY),
            Mechanism::LockedLanes | Mechanism::ThreadLanes => (closed_area(), LOCKED),
        };
        Lanes {
            mechanism,
            area,
            lanes: cpus | writer,
        }
    }
}

/// Why there is no segment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The memory could not be had.
    #[error("no memory for the lanes: {0}")]
    Memory(#[from] io::Error),
    /// The offset is not a multiple of [`STRIDE`].
    #[error("a segment cannot start at {0}, which is not a multiple of {STRIDE}")]
    Offset(u64),
    /// No machine has so many CPUs.
    #[error("a segment cannot have lanes for {0} CPUs")]
    Cpus(u32),
}
