//! Counters that can be asked while they count: of what they are known to be without a sum, and within which bound.

mod batch;
mod carry;
mod carrying;
mod estimate;
mod local;
mod many;
mod shape;
mod tree;
mod words;

pub use batch::BatchCounter;
pub(crate) use carrying::forked;
pub use estimate::Estimate;
pub use many::{BatchCounters, Member};
pub use tree::TreeCounter;

use countersink_percpu::Slots;

use crate::kind::Kind;

/// Lets counters begin at 0 in words that others of their kind had, and nobody else uses.
pub(crate) fn begin(all: &Slots<'_>, kind: Kind) {
    if kind == Kind::Tree {
        if let Some(tree) = tree::Tree::of(all, 0) {
            tree.set(0);
        }
        return;
    }
    for index in 0..all.len() / 2 {
        if let Some(words) = words::Words::of(all, index) {
            words.begin();
        }
    }
}
