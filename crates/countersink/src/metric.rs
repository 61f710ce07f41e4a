//! What every metric consists of: a description, and the place of its words once it has some.

use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU8, AtomicU32};

use countersink_percpu::{Block, BlockCell, Published, Slot, Slots};

use crate::kind::{Kind, Unit};
use crate::os;
use crate::region::{self, Granted, Refusal, Wanted};

/// Where a metric counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Home {
    /// In the process's region, where a reader finds it.
    Region,
    /// In memory that no reader sees, because it was refused; the reason is a phrase.
    Private(&'static str),
    /// Nowhere of its own, for want of memory: what it says is void.
    Lost,
}

/// What a metric is, and where its words are. `N` is the fewest words that one of its kind has.
pub(crate) struct Core<const N: usize> {
    cell: BlockCell<N>,
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) unit: Unit,
    kind: Kind,
    /// A histogram's grouping power and one, or 0.
    pub(crate) grouping: u32,
    labels: Option<Box<str>>,
    /// The length of the group's name, and what registers the whole group.
    pub(crate) group: Option<(usize, fn())>,
    /// The number of the entry and one, or 0.
    entry: AtomicU32,
    /// One of the numbers below.
    home: AtomicU8,
    /// How often the process had forked when it was registered.
    forks: AtomicU32,
}

/// Nobody has used it yet.
const NOT_YET: u8 = 0;
const IN_REGION: u8 = 1;
const LOST: u8 = 2;
/// And the refusal's number.
const PRIVATE: u8 = 16;

impl<const N: usize> Core<N> {
    pub(crate) const fn new(kind: Kind, name: &'static str, grouping: u32) -> Self {
        Core {
            cell: BlockCell::new(),
            name,
            help: "",
            unit: Unit::None,
            kind,
            grouping,
            labels: None,
            group: None,
            entry: AtomicU32::new(0),
            home: AtomicU8::new(NOT_YET),
            forks: AtomicU32::new(0),
        }
    }

    /// Another metric of the same description, with labels.
    pub(crate) fn labelled(&self, labels: &str) -> Self {
        let mut core = Core::new(self.kind, self.name, self.grouping);
        core.help = self.help;
        core.unit = self.unit;
        core.labels = Some(labels.into());
        core.group = self.group.map(|(length, _)| (length, nothing as fn()));
        core
    }

    /// The first words; `None` before the first use.
    #[inline(always)]
    pub(crate) fn block(&self) -> Option<Block<'static, N>> {
        self.cell.get()
    }

    /// All words; `None` before the first use.
    #[inline(always)]
    pub(crate) fn registered(&self) -> Option<Slots<'static>> {
        self.cell.slots()
    }

    /// All words, after registering if need be.
    pub(crate) fn words(&self) -> Option<Slots<'static>> {
        match self.cell.slots() {
            Some(words) => Some(words),
            None => self.register(),
        }
    }

    /// One of the words.
    #[inline(always)]
    pub(crate) fn word(&self, at: usize) -> Option<Slot<'static>> {
        self.words()?.get(at)
    }

    /// Registers the metric, and its whole group, at the first use; its words.
    ///
    /// May run in a signal handler, and in several threads at once.
    #[cold]
    #[inline(never)]
    pub(crate) fn register(&self) -> Option<Slots<'static>> {
        if let Some((_, register)) = self.group {
            register();
        }
        self.register_alone()
    }

    pub(crate) fn register_alone(&self) -> Option<Slots<'static>> {
        if let Some(words) = self.cell.slots() {
            return Some(words);
        }
        // Before it is registered: a fork in between makes the entry one that is not used again.
        let forks = os::forks();
        let wanted = Wanted {
            name: self.name,
            labels: self.labels.as_deref().unwrap_or(""),
            help: self.help,
            group: self.group.map_or(0, |(length, _)| length),
            kind: self.kind,
            unit: self.unit,
            grouping: self.grouping,
        };
        let main = region::main();
        if let Some(region) = main
            && self.kind == Kind::Span
        {
            // Whoever reads a span has to know its clock.
            region.note_clock();
        }
        let refusal = match main.map(|region| (region, region.register(&wanted))) {
            Some((_, Ok(granted))) => return Some(self.publish(granted, IN_REGION, forks)),
            Some((_, Err(refusal))) => refusal,
            None => Refusal::NoMemory,
        };
        let private =
            region::pool().and_then(|pool| pool.register_privately(self.kind, self.grouping));
        if let Some(region) = main {
            region.refuse(
                self.name,
                if private.is_some() {
                    refusal
                } else {
                    Refusal::NoMemory
                },
            );
        }
        match private {
            Some(granted) => Some(self.publish(granted, PRIVATE + refusal as u8, forks)),
            None => self.use_emergency(),
        }
    }

    /// Makes words the metric's, unless another thread was faster.
    fn publish(&self, granted: Granted, home: u8, forks: u32) -> Slots<'static> {
        match self.cell.publish(granted.words) {
            Ok(Published::Ours(words)) => {
                self.forks.store(forks, Relaxed);
                self.home.store(home, Release);
                self.entry.store(granted.entry + 1, Release);
                words
            }
            Ok(Published::Theirs(words)) => {
                release(home, granted.entry);
                words
            }
            // Somebody else is publishing words of another kind.
            Err(words) => match self.cell.slots() {
                Some(theirs) => {
                    release(home, granted.entry);
                    theirs
                }
                // Kept, since it is counted in now; it is not found again.
                None => words,
            },
        }
    }

    #[cold]
    fn use_emergency(&self) -> Option<Slots<'static>> {
        let (words, own) = region::emergency_words(self.kind, self.grouping);
        let home = if own {
            PRIVATE + Refusal::NoMemory as u8
        } else {
            LOST
        };
        self.home.store(home, Release);
        match self.cell.publish(words?) {
            Ok(Published::Ours(words) | Published::Theirs(words)) | Err(words) => Some(words),
        }
    }

    /// Where the metric counts; registers it.
    pub(crate) fn home(&self) -> Home {
        self.words();
        match self.home.load(Acquire) {
            LOST => Home::Lost,
            code if code >= PRIVATE => Home::Private(Refusal::text(u32::from(code - PRIVATE))),
            _ => Home::Region,
        }
    }

    /// Notes that the metric's values were taken.
    pub(crate) fn note_reset(&self) {
        if let Some(region) = region::existing() {
            region.note_reset();
        }
    }

    /// The rate that ticks of this metric are converted with.
    pub(crate) fn ticks_per_second(&self) -> u64 {
        let rate = region::existing().map_or(0, region::Region::ticks_per_second);
        if rate == 0 {
            crate::clock::ticks_per_second()
        } else {
            rate
        }
    }
}

/// A labelled metric is registered when it is made.
fn nothing() {}

fn release(home: u8, entry: u32) {
    let region = match home {
        IN_REGION => region::existing(),
        _ => region::pool(),
    };
    if let Some(region) = region {
        region.release(entry);
    }
}

impl<const N: usize> Drop for Core<N> {
    /// Words of a dropped metric are used again, under another generation.
    fn drop(&mut self) {
        let Some(entry) = self.entry.get_mut().checked_sub(1) else {
            return;
        };
        let home = *self.home.get_mut();
        let region = match home {
            IN_REGION => region::existing(),
            LOST => None,
            _ => region::pool(),
        };
        // A process that was forked meanwhile has the same words.
        let forked = *self.forks.get_mut() != os::forks();
        match region {
            Some(region) if forked && home == IN_REGION => region.keep(),
            Some(region) => region.release(entry),
            None => {}
        }
    }
}

impl<const N: usize> fmt::Debug for Core<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metric")
            .field("name", &self.name)
            .field("labels", &self.labels)
            .field("words", &self.cell)
            .finish_non_exhaustive()
    }
}
