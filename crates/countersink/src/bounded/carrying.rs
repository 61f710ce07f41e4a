//! How many threads of this process are in the middle of publishing.
//!
//! In private memory, since only the threads of this process can be waited for. A child that is forked has
//! a copy, in which only the thread that forked goes on.

use countersink_percpu::{Block, BlockCell};

use crate::kind::Kind;
use crate::region;

/// How many have begun, and how many have ended.
static WORDS: BlockCell<2> = BlockCell::new();

/// Held by a thread that is in the middle.
pub(crate) struct Carrying(Option<Block<'static, 2>>);

impl Carrying {
    #[inline(always)]
    pub(crate) fn begin() -> Self {
        let words = WORDS.get();
        if let Some(words) = words {
            words.slot::<0, u64>().inc();
        }
        Carrying(words)
    }
}

impl Drop for Carrying {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(words) = self.0 {
            words.slot::<1, u64>().inc();
        }
    }
}

/// Makes sure that there are words, before a counter publishes for the first time: later it may be in a signal handler that has
/// interrupted whoever makes memory. Where there is no memory, nobody is known to be in the middle, and [`quiet`] says so.
pub(crate) fn prepare() {
    if WORDS.get().is_none() {
        first();
    }
}

#[cold]
fn first() -> Option<Block<'static, 2>> {
    let granted = region::pool()?.register_privately(Kind::Gauge, 0)?;
    // Another thread's words are as good; ours are not used then.
    let _ = WORDS.publish(granted.words);
    WORDS.get()
}

/// How many have begun so far; `None` where that cannot be told.
pub(crate) fn begun() -> Option<u64> {
    let words = WORDS.get()?;
    Some(words.slot::<0, u64>().sum())
}

/// How many have begun so far, if at some moment of this call all of them had ended.
pub(crate) fn quiet() -> Option<u64> {
    // The ended first: if as many have begun by then, all of them have ended.
    let words = WORDS.get()?;
    let ended = words.slot::<1, u64>().sum();
    begun().filter(|begun| *begun == ended)
}

/// Forgets the threads that a child does not have.
#[cfg(all(target_os = "linux", not(countersink_portable)))]
pub(crate) fn forked() {
    if let Some(words) = WORDS.get() {
        words.slot::<0, u64>().replace(0);
        words.slot::<1, u64>().replace(0);
    }
}
