//! Locks and bits for programs that share memory between CPUs.
//!
//! - [`RwSem`]: a reader-writer lock in one word, that can count its own events and remember who owns it.
//! - [`PercpuRwSem`]: one whose readers touch only memory of their own CPU; writers pay for that.
//! - [`Bits`] and [`AtomicBits`]: bits of words, also read before they are written, which leaves cache lines clean that
//!   need no change.
//!
//! Both locks are raw locks of [`lock_api`], which has the guards: mapped guards, guards of an `Arc`, timeouts,
//! downgrades.
//!
//! ```
//! use countersink_sync::{PercpuRwSem, RwSem};
//!
//! static CONFIGURATION: PercpuRwSem<Vec<u32>> = PercpuRwSem::new(Vec::new());
//! static TABLE: RwSem<[u64; 4]> = RwSem::new([0; 4]);
//!
//! CONFIGURATION.write().push(1);
//! assert_eq!(CONFIGURATION.read().len(), 1);
//! TABLE.write()[0] = 7;
//! assert_eq!(TABLE.read()[0], 7);
//! ```

/// The README's examples compile and run: here, where all that they use is at hand.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

mod bits;
mod events;
mod owner;
mod parking;
#[cfg(not(loom))]
pub mod percpu;
pub mod rwsem;

pub use bits::{AtomicBits, Bits};
pub use events::{Event, Events, NoEvents};
pub use owner::{NoOwner, Owner, OwnerKind, RecordOwner};
#[cfg(not(loom))]
pub use percpu::{PercpuRwSem, RawPercpuRwSem};
pub use rwsem::{RawRwSem, RwSem};

#[doc(hidden)]
pub use countersink;
pub use lock_api;
