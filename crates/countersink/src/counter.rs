//! Counters.

use crate::kind::{Kind, Unit};
use crate::metric::{Core, Home};
use crate::values;

/// Counts events, or adds up amounts; wraps at 2⁶⁴.
///
/// ```
/// use countersink::Counter;
///
/// static REQUESTS: Counter = Counter::new("requests").help("Requests that were answered");
///
/// REQUESTS.inc();
/// REQUESTS.add(2);
/// assert_eq!(REQUESTS.sum(), 3);
/// ```
///
/// Counting takes about as long as an unprotected addition, at any number of threads; it may be done
/// anywhere: before `main`, in signal handlers, in destructors of thread-locals, after a fork. But for a
/// child of `vfork`, which has its parent's memory and thread, and must do nothing but execute.
#[derive(Debug)]
pub struct Counter {
    core: Core<1>,
}

impl Counter {
    /// A counter with a name: `[a-zA-Z_:][a-zA-Z0-9_:]*`, at most 255 bytes, and with its labels at most 448.
    ///
    /// Another counter of the same name is the same counter. When the last one of a name is dropped, what it
    /// counted is gone: keep it in a `static`. Where a name cannot be had, it counts privately: one that is
    /// none, one that something of another kind, unit, grouping power or sum has, or for want of room; see
    /// [`home`](Self::home).
    pub const fn new(name: &'static str) -> Self {
        Counter {
            core: Core::new(Kind::Counter, name, 0),
        }
    }

    /// Says what it counts. Cut off where name, labels and this together are more than 448 bytes.
    pub const fn help(mut self, help: &'static str) -> Self {
        self.core.help = help;
        self
    }

    /// Says in what unit.
    pub const fn unit(mut self, unit: Unit) -> Self {
        self.core.unit = unit;
        self
    }

    #[doc(hidden)]
    pub const fn in_group(mut self, length: usize, register: fn()) -> Self {
        self.core.group = Some((length, register));
        self
    }

    /// Counts one.
    #[inline(always)]
    pub fn inc(&self) {
        match self.core.block() {
            Some(words) => words.slot::<0, u64>().inc(),
            None => self.first(1),
        }
    }

    /// Adds, wrapping.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        match self.core.block() {
            Some(words) => words.slot::<0, u64>().add(n),
            None => self.first(n),
        }
    }

    #[cold]
    #[inline(never)]
    fn first(&self, n: u64) {
        self.core.register();
        if let Some(word) = self.core.word(0) {
            word.add(n);
        }
    }

    /// The value: of this process and all that share its region. A load for each possible CPU.
    pub fn sum(&self) -> u64 {
        self.core.word(0).map_or(0, |word| values::sum(&word))
    }

    /// The value, which begins at 0 again: what others add meanwhile is in this value or in the next. As
    /// [`sum`](Self::sum), and a compare-exchange.
    pub fn take(&self) -> u64 {
        let taken = self.core.word(0).map_or(0, |word| word.replace(0));
        self.core.note_reset();
        taken
    }

    /// Where it counts. Registers it, if nothing has: microseconds.
    pub fn home(&self) -> Home {
        self.core.home()
    }

    #[doc(hidden)]
    pub fn name(&self) -> &'static str {
        self.core.name
    }

    pub(crate) fn word(&self) -> Option<countersink_percpu::Slot<'static>> {
        self.core.word(0)
    }
}

impl crate::family::Metric for Counter {
    fn labelled(&self, labels: &str) -> Self {
        Counter {
            core: self.core.labelled(labels),
        }
    }

    fn register(&self) {
        self.core.register_alone();
    }
}
