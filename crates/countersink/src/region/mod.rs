//! The process's region: where its metrics count.
//!
//! It is made at the first use of any metric, by whoever comes first; no lock is taken, so that this
//! may be a signal handler. `docs/region-format.md` says what is where.
//!
//! A core file has what was counted, of the parts that are in use: to Linux a memfd is anonymous shared memory,
//! which bit 1 of `/proc/PID/coredump_filter` stands for. It is set by default (0x33). A region
//! file is dumped with bit 3, which is not; but the file is there after the crash.
#![allow(unsafe_code)]

mod attach;
mod emergency;
mod entries;
mod free;
mod header;
mod index;
mod options;
mod refusal;
mod register;
#[cfg(unix)]
mod shared;
mod unshare;

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64};

use countersink_percpu::{Mechanism, SegmentRef, choice};

use crate::layout::{self, ENTRIES_IN_UNIT, Layout, UNIT};
use crate::os::{self, Hindrance, Memory};

pub(crate) use attach::Attached;
pub(crate) use emergency::words as emergency_words;
pub use options::{Options, OptionsError, Place, Status, configure, status};
pub(crate) use refusal::Refusal;
pub(crate) use register::{Granted, Wanted, is_name};
#[cfg(unix)]
pub use shared::Shared;
pub use unshare::{UnshareError, unshare};

/// What this process knows of a region. Lives as long as the process.
#[derive(Debug)]
pub(crate) struct Region {
    memory: Memory,
    mechanism: Mechanism,
    /// Why it is not where it was to be.
    hindrance: Hindrance,
    /// Units of the entries that can be used.
    open_entries: AtomicU32,
    /// Segments that can be used.
    open_segments: AtomicU32,
    /// What readers find; never used here but to close it.
    descriptor: AtomicI32,
    /// The device and inode that it has, by which it is known again.
    file: [AtomicU64; 2],
    /// Whether the memory is a new one, since the process left the region that it shared.
    left: AtomicBool,
}

// SAFETY: the memory is used through atomics and handles only.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

/// The region that others can read.
static MAIN: AtomicPtr<Region> = AtomicPtr::new(null_mut());
/// Private memory, for metrics that got no place there.
static POOL: AtomicPtr<Region> = AtomicPtr::new(null_mut());

/// The process's region; made at the first call. `None` if there is no memory for any.
pub(crate) fn main() -> Option<&'static Region> {
    get_or_make(&MAIN, options::make)
}

/// The process's region, if there is one already.
pub(crate) fn existing() -> Option<&'static Region> {
    // SAFETY: what get_or_make() has published lives forever. Acquire pairs with its release.
    NonNull::new(MAIN.load(Acquire)).map(|region| unsafe { region.as_ref() })
}

/// That private memory, if there is some already.
fn existing_pool() -> Option<&'static Region> {
    // SAFETY: as above.
    NonNull::new(POOL.load(Acquire)).map(|region| unsafe { region.as_ref() })
}

/// Private memory for what has no place in the region. With the lanes of the region, so that handles
/// are of one kind.
pub(crate) fn pool() -> Option<&'static Region> {
    get_or_make(&POOL, || {
        let (cpus, mechanism) = match main() {
            Some(region) => (region.memory.layout.cpus, region.mechanism),
            None => (lanes(), choice().mechanism),
        };
        let layout = Layout::new(cpus, layout::MOST_ENTRIES, 64)?;
        Region::made(os::private(layout).ok()?, mechanism, Hindrance::None)
    })
}

fn get_or_make(
    place: &'static AtomicPtr<Region>,
    make: impl FnOnce() -> Option<NonNull<Region>>,
) -> Option<&'static Region> {
    // Acquire pairs with the release below: whoever sees a region sees what it consists of.
    let region = match NonNull::new(place.load(Acquire)) {
        Some(region) => region,
        None => {
            let Some(made) = make() else {
                // What hindered may be that another thread was making one.
                let theirs = NonNull::new(place.load(Acquire))?;
                // SAFETY: as below.
                return Some(unsafe { theirs.as_ref() });
            };
            match place.compare_exchange(null_mut(), made.as_ptr(), AcqRel, Acquire) {
                Ok(_) => made,
                Err(theirs) => {
                    // SAFETY: ours, which nobody else has seen.
                    options::discard(unsafe { &made.as_ref().memory });
                    NonNull::new(theirs)?
                }
            }
        }
    };
    // SAFETY: what was published lives forever.
    Some(unsafe { region.as_ref() })
}

/// Memory for a region's description that lives as long as the process: what the program has brought along,
/// and a new page where that is used up by many that came at once.
fn place() -> Option<NonNull<Region>> {
    struct Places([core::cell::UnsafeCell<core::mem::MaybeUninit<Region>>; 4]);
    // SAFETY: each is given away once.
    unsafe impl Sync for Places {}
    static PLACES: Places =
        Places([const { core::cell::UnsafeCell::new(core::mem::MaybeUninit::uninit()) }; 4]);
    static USED: AtomicU32 = AtomicU32::new(0);
    const { assert!(size_of::<Region>() <= 4096) };
    let used = USED.fetch_update(Relaxed, Relaxed, |used| (used < 4).then_some(used + 1));
    match used.map(|used| PLACES.0.get(used as usize)) {
        Ok(Some(place)) => NonNull::new(place.get().cast()),
        _ => os::page().map(NonNull::cast),
    }
}

/// CPU lanes of a region made here.
fn lanes() -> u32 {
    choice().cpus.clamp(1, layout::MOST_CPUS)
}

impl Region {
    /// A region in this memory, of which nothing is open.
    fn new(memory: Memory, mechanism: Mechanism, hindrance: Hindrance) -> Region {
        Region {
            memory,
            mechanism,
            hindrance,
            open_entries: AtomicU32::new(0),
            open_segments: AtomicU32::new(0),
            descriptor: AtomicI32::new(memory.descriptor),
            file: [memory.file.0.into(), memory.file.1.into()],
            left: AtomicBool::new(false),
        }
    }

    /// A region in this memory, which is given back if it cannot be used.
    fn made(memory: Memory, mechanism: Mechanism, hindrance: Hindrance) -> Option<NonNull<Region>> {
        let opened = os::open_part(&memory, 0, memory.layout.entries_offset());
        let Some(place) = opened.then(place).flatten() else {
            os::abandon(&memory);
            return None;
        };
        // SAFETY: memory of our own, aligned and large enough.
        unsafe { place.write(Region::new(memory, mechanism, hindrance)) };
        Some(place)
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn layout(&self) -> Layout {
        self.memory.layout
    }

    /// A word of the header, the index, or an entry that is open.
    fn u64(&self, offset: u64) -> &AtomicU64 {
        debug_assert!(offset + 8 <= self.memory.layout.segments_offset());
        // SAFETY: inside the mapping and aligned, by the layout; all that write there use atomics.
        unsafe { AtomicU64::from_ptr(self.at(offset).cast()) }
    }

    fn u32(&self, offset: u64) -> &AtomicU32 {
        debug_assert!(offset + 4 <= self.memory.layout.segments_offset());
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(self.at(offset).cast()) }
    }

    fn at(&self, offset: u64) -> *mut u8 {
        self.memory.start.as_ptr().wrapping_add(offset as usize)
    }

    /// A segment, opened if need be; `None` if there is none of this number, or it cannot be opened.
    pub(crate) fn segment(&self, number: u32) -> Option<SegmentRef<'static>> {
        let layout = self.memory.layout;
        if number >= layout.segments {
            return None;
        }
        // Segments are handed out in turn, so all below are open.
        if number >= self.open_segments.load(Acquire) {
            let bytes = layout.segment_size() * u64::from(number + 1);
            if !os::open_part(&self.memory, layout.segments_offset(), bytes) {
                return None;
            }
            self.open_segments.fetch_max(number + 1, AcqRel);
        }
        let offset = layout.segments_offset() + u64::from(number) * layout.segment_size();
        let start = NonNull::new(self.at(offset))?;
        // SAFETY: a segment of this layout, in a mapping that is never removed; whoever uses the
        // region uses it with the lanes and the mechanism of its header.
        Some(unsafe { SegmentRef::new(start, layout.cpus, self.mechanism) })
    }

    /// Makes sure that an entry can be used; whether it can.
    fn open_entry(&self, number: u32) -> bool {
        let layout = self.memory.layout;
        if number >= layout.entries {
            return false;
        }
        let units = number / ENTRIES_IN_UNIT + 1;
        if units > self.open_entries.load(Acquire) {
            let bytes = u64::from(units) * UNIT;
            if !os::open_part(&self.memory, layout.entries_offset(), bytes) {
                return false;
            }
            self.open_entries.fetch_max(units, AcqRel);
        }
        true
    }

    /// How many entries have been handed out, never more than there are, whatever the header says.
    fn entries_used(&self) -> u32 {
        let used = self.u64(layout::header::ENTRIES_USED as u64).load(Relaxed);
        used.min(u64::from(self.memory.layout.entries)) as u32
    }
}
