//! The ways as the tests see them: how to make one, and what its handlers must do first.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use countersink_percpu::local::{Atomic, Local, LocalCounter, PerCpu, TriValue};
#[cfg(unix)]
use countersink_percpu::local::{Deferred, Sigmask};
use countersink_percpu::{Segment, WORDS};

/// What the kernel calls before a handler's body runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "not every system runs handlers here")]
pub(crate) enum Entry {
    /// The body.
    Plain,
    /// `trivalue::Context`, then the body.
    Context,
    /// What `deferred::install` installs.
    Deferred,
    /// The context of `mutants::Words`, then the body.
    Reference,
}

/// A way under test.
#[allow(dead_code, reason = "not every system runs handlers here")]
pub(crate) trait Way: LocalCounter + Sized + 'static {
    /// What its handlers need.
    const ENTRY: Entry = Entry::Plain;
    /// Whether `add_return` returns the counter's value (a lane's otherwise).
    const RETURNS_VALUE: bool = true;
    /// A counter at 0.
    fn make() -> Self;
}

impl Way for Atomic {
    fn make() -> Self {
        Self::default()
    }
}

#[cfg(unix)]
impl Way for Sigmask {
    fn make() -> Self {
        Self::default()
    }
}

#[cfg(unix)]
impl Way for Deferred {
    const ENTRY: Entry = Entry::Deferred;
    fn make() -> Self {
        Self::default()
    }
}

impl Way for TriValue {
    const ENTRY: Entry = Entry::Context;
    fn make() -> Self {
        Self::default()
    }
}

impl Way for Local {
    fn make() -> Self {
        Self::default()
    }
}

impl Way for PerCpu<'static> {
    const RETURNS_VALUE: bool = false;
    /// A word that no other test has.
    fn make() -> Self {
        static SEGMENT: OnceLock<Segment> = OnceLock::new();
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let segment = SEGMENT.get_or_init(|| Segment::private().expect("memory for a segment"));
        let word = NEXT.fetch_add(1, Relaxed);
        assert!(word < WORDS);
        PerCpu(segment.slot(word).expect("a segment has so many words"))
    }
}

/// A test of that name for each way, in a module `$test`, that calls `$test::<Way>()`.
macro_rules! for_each_way {
    ($test:ident) => {
        mod $test {
            use countersink_percpu::local::*;

            #[test]
            fn atomic() {
                super::$test::<Atomic>();
            }
            #[cfg(unix)]
            #[test]
            fn sigmask() {
                super::$test::<Sigmask>();
            }
            #[cfg(unix)]
            #[test]
            fn deferred() {
                super::$test::<Deferred>();
            }
            #[test]
            fn trivalue() {
                super::$test::<TriValue>();
            }
            #[test]
            fn local() {
                super::$test::<Local>();
            }
            #[test]
            fn percpu() {
                super::$test::<PerCpu<'static>>();
            }
        }
    };
}
pub(crate) use for_each_way;
