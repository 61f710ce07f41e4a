//! Event groups: counters that are declared together.

use countersink_percpu::{Lane, Slot};

use crate::counter::Counter;

/// Declares a group of events: named counters with help texts, which are registered together at the
/// first use of any.
///
/// ```
/// countersink::event_group! {
///     /// What happens to the cache.
///     pub static CACHE: CacheEvents = "cache" {
///         /// Found
///         hit,
///         /// Not found
///         miss,
///     }
/// }
///
/// CACHE.hit.inc();
/// CACHE.miss.add(2);
/// assert_eq!(CACHE.read(), [("cache_hit", 1), ("cache_miss", 2)]);
/// ```
///
/// Each event has a doc comment, whose first line is its help text.
///
/// `when (…)` after the group's name takes what `cfg` takes. Where it does not hold, events are of no
/// size and counting is no code:
///
/// ```
/// countersink::event_group! {
///     static LOCK: LockEvents = "lock" when (feature = "lock-events") {
///         /// Taken
///         taken,
///     }
/// }
///
/// LOCK.taken.inc();
/// assert_eq!(size_of::<LockEvents>(), 0);
/// ```
///
/// A [`Family`](crate::Family) tells several groups of one declaration apart by labels:
/// `Family::new(LockEvents::new(), ["lock"])`.
#[macro_export]
macro_rules! event_group {
    (
        $(#[$attribute:meta])*
        $visibility:vis static $name:ident: $type:ident = $group:literal when ($($condition:tt)*) {
            $($(#[doc = $help:literal])+ $event:ident),+ $(,)?
        }
    ) => {
        #[cfg($($condition)*)]
        $crate::event_group! {
            $(#[$attribute])*
            $visibility static $name: $type = $group { $($(#[doc = $help])+ $event),+ }
        }

        #[cfg(not($($condition)*))]
        $(#[$attribute])*
        $visibility static $name: $type = $type::new();

        /// A group of events, which is switched off.
        #[cfg(not($($condition)*))]
        #[derive(Debug)]
        $visibility struct $type {
            $($(#[doc = $help])+ pub $event: $crate::NoEvent,)+
        }

        #[cfg(not($($condition)*))]
        #[allow(dead_code)]
        impl $type {
            /// The group.
            pub const fn new() -> Self {
                $type { $($event: $crate::NoEvent,)+ }
            }

            /// Nothing: no event has a value.
            pub fn read(&self) -> [(&'static str, u64); 0] {
                []
            }

            /// Nothing: no event has a value.
            pub fn take(&self) -> [(&'static str, u64); 0] {
                []
            }
        }

        #[cfg(not($($condition)*))]
        impl $crate::Metric for $type {
            fn labelled(&self, _: &str) -> Self {
                $type::new()
            }
            fn register(&self) {}
        }
    };
    (
        $(#[$attribute:meta])*
        $visibility:vis static $name:ident: $type:ident = $group:literal {
            $($(#[doc = $help:literal])+ $event:ident),+ $(,)?
        }
    ) => {
        $(#[$attribute])*
        $visibility static $name: $type = $type::with(|| $crate::Metric::register(&$name));

        /// A group of events.
        #[derive(Debug)]
        $visibility struct $type {
            $($(#[doc = $help])+ pub $event: $crate::Counter,)+
        }

        #[allow(dead_code)]
        impl $type {
            /// A group that is registered event by event; for a family.
            pub const fn new() -> Self {
                Self::with(|| {})
            }

            const fn with(register: fn()) -> Self {
                $type {
                    $($event: $crate::Counter::new(concat!($group, "_", stringify!($event)))
                        .help($crate::group::first_line(concat!($($help, "\n"),+)))
                        .in_group($group.len(), register),)+
                }
            }

            /// The events' names and values, in the order in which they are declared, from one sweep
            /// over the lanes: an event that was counted before the sweep is in it, and one counted
            /// after it is not.
            pub fn read(&self) -> [(&'static str, u64); [$(stringify!($event)),+].len()] {
                $crate::group::read([$(&self.$event),+])
            }

            /// The events' names and values, which begin at 0 again.
            pub fn take(&self) -> [(&'static str, u64); [$(stringify!($event)),+].len()] {
                [$((self.$event.name(), self.$event.take())),+]
            }
        }

        impl $crate::Metric for $type {
            fn labelled(&self, labels: &str) -> Self {
                $type { $($event: $crate::Metric::labelled(&self.$event, labels),)+ }
            }

            fn register(&self) {
                $($crate::Metric::register(&self.$event);)+
            }
        }
    };
}

/// An event of a group that is switched off: nothing is counted, and there is no code.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvent;

impl NoEvent {
    /// Nothing.
    #[inline(always)]
    pub fn inc(&self) {}

    /// Nothing.
    #[inline(always)]
    pub fn add(&self, _: u64) {}

    /// 0.
    #[inline(always)]
    pub fn sum(&self) -> u64 {
        0
    }

    /// 0.
    #[inline(always)]
    pub fn take(&self) -> u64 {
        0
    }

    /// Nowhere, as it is switched off.
    pub fn home(&self) -> crate::Home {
        crate::Home::Private("switched off")
    }
}

/// The first line of a comment, without the space before it.
#[doc(hidden)]
pub const fn first_line(text: &str) -> &str {
    let bytes = text.as_bytes();
    let mut end = 0;
    while end < bytes.len() && bytes[end] != b'\n' {
        end += 1;
    }
    let start = if end > 0 && bytes[0] == b' ' { 1 } else { 0 };
    text.split_at(end).0.split_at(start).1
}

/// Names and values, from one sweep over the lanes.
#[doc(hidden)]
pub fn read<const N: usize>(counters: [&Counter; N]) -> [(&'static str, u64); N] {
    let words = counters.map(Counter::word);
    let mut values = sweep(&words);
    // A reset in the middle would show what was there before it beside what came after.
    for _ in 0..64 {
        let before = words.map(|word| word?.load(Lane::Bias));
        values = sweep(&words);
        if words.map(|word| word?.load(Lane::Bias)) == before {
            break;
        }
    }
    core::array::from_fn(|at| (counters[at].name(), values[at]))
}

/// All words lane by lane, the bias first.
fn sweep<const N: usize>(words: &[Option<Slot<'static>>; N]) -> [u64; N] {
    let mut sums = [0_u64; N];
    let mut add = |lane: Lane| {
        let mut some = false;
        for (sum, word) in sums.iter_mut().zip(words) {
            if let Some(value) = word.and_then(|word| word.load(lane)) {
                *sum = sum.wrapping_add(value);
                some = true;
            }
        }
        some
    };
    add(Lane::Bias);
    add(Lane::Shared);
    (0..).take_while(|cpu| add(Lane::Cpu(*cpu))).for_each(drop);
    sums
}

#[cfg(test)]
mod tests {
    use super::first_line;

    #[test]
    fn help_is_the_first_line() {
        assert_eq!(first_line(" Found\n and more\n"), "Found");
        assert_eq!(first_line("Found\n"), "Found");
        assert_eq!(first_line("\n"), "");
        assert_eq!(first_line(""), "");
    }
}
