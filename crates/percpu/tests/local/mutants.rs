//! The mistakes that the ways avoid, and the ways again with loads and stores that no compiler can
//! merge into one instruction, which x86-64 would forgive.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed, compiler_fence};

use countersink_percpu::local::{Context, LocalCounter, TriValue, deferred};

use crate::ways::{Entry, Way};

/// Loads, adds and stores, one instruction each.
fn add_in_three(word: &AtomicI64, n: i64) -> i64 {
    let mut value: i64;
    // SAFETY: a word of this thread; each instruction reads or writes it whole.
    unsafe {
        core::arch::asm!("mov {}, qword ptr [{}]", out(reg) value, in(reg) word.as_ptr(), options(nostack));
        core::arch::asm!("add {}, {}", inout(reg) value, in(reg) n, options(nostack));
        core::arch::asm!("mov qword ptr [{}], {}", in(reg) word.as_ptr(), in(reg) value, options(nostack));
    }
    value
}

/// A counter made of one word or more, with what they have in common.
macro_rules! counter {
    ($(#[$doc:meta])* $type:ident { $($field:ident: $inner:ty),* }, $entry:ident, $self:ident, $n:ident,
     read: $read:expr, add: $add:expr) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(crate) struct $type { $($field: $inner),* }

        impl LocalCounter for $type {
            const NAME: &'static str = stringify!($type);
            const CONTEXTS: &'static [Context] = &[];
            const BYTES: usize = size_of::<Self>();
            fn read(&$self) -> i64 {
                $read
            }
            fn set(&self, value: i64) {
                self.add(value.wrapping_sub(self.read()));
            }
            fn add(&$self, $n: i64) {
                $add;
            }
            fn add_return(&self, n: i64) -> i64 {
                self.add(n);
                self.read()
            }
        }

        impl Way for $type {
            const ENTRY: Entry = Entry::$entry;
            fn make() -> Self {
                Self::default()
            }
        }
    };
}

counter!(
    /// Mutant: nothing protects the addition.
    Unprotected { word: AtomicI64 }, Plain, self, n,
    read: self.word.load(Relaxed), add: add_in_three(&self.word, n)
);

counter!(
    /// Masks as `Deferred` does: must be exact.
    Masked { word: AtomicI64 }, Deferred, self, n,
    read: self.word.load(Relaxed), add: deferred::masked(|| add_in_three(&self.word, n))
);

counter!(
    /// Mutant: masks, but its handlers were not installed with `deferred::install`.
    MaskedInVain { word: AtomicI64 }, Plain, self, n,
    read: self.word.load(Relaxed), add: deferred::masked(|| add_in_three(&self.word, n))
);

/// The words of `TriValue`, as it describes them.
#[derive(Default)]
pub(crate) struct Words([AtomicI64; 3]);

impl Words {
    fn sum(&self) -> i64 {
        self.0.iter().map(|word| word.load(Relaxed)).sum()
    }

    fn add(&self, n: i64) {
        match REFERENCE_DEPTH.get() {
            depth @ 0..2 => _ = add_in_three(&self.0[depth], n),
            _ => _ = self.0[2].fetch_add(n, Relaxed),
        }
    }
}

std::thread_local! {
    static REFERENCE_DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Runs a handler in the context of [`Words`].
pub(crate) fn in_context(handler: impl FnOnce()) {
    REFERENCE_DEPTH.set(REFERENCE_DEPTH.get() + 1);
    compiler_fence(std::sync::atomic::Ordering::SeqCst);
    handler();
    compiler_fence(std::sync::atomic::Ordering::SeqCst);
    REFERENCE_DEPTH.set(REFERENCE_DEPTH.get() - 1);
}

counter!(
    /// A word for each context, as `TriValue`: must be exact.
    InContext { words: Words }, Reference, self, n,
    read: self.words.sum(), add: self.words.add(n)
);

counter!(
    /// Mutant: its handlers enter no context.
    WithoutContext { words: Words }, Plain, self, n,
    read: self.words.sum(), add: self.words.add(n)
);

counter!(
    /// `TriValue` itself, its handlers without a context. The compiler may merge its load and store;
    /// then nothing is lost, by luck.
    RealWithoutContext { counter: TriValue }, Plain, self, n,
    read: self.counter.read(), add: self.counter.add(n)
);

/// Mutant: `set` stores two halves.
#[derive(Default)]
pub(crate) struct SetInHalves(AtomicI64);

impl LocalCounter for SetInHalves {
    const NAME: &'static str = "SetInHalves";
    const CONTEXTS: &'static [Context] = &[];
    const BYTES: usize = size_of::<Self>();
    fn read(&self) -> i64 {
        self.0.load(Relaxed)
    }
    fn set(&self, value: i64) {
        let word = self.0.as_ptr().cast::<u32>();
        // SAFETY: two halves of a word of this thread.
        unsafe {
            core::arch::asm!("mov dword ptr [{}], {:e}", in(reg) word, in(reg) value, options(nostack));
            core::arch::asm!("mov dword ptr [{} + 4], {:e}", in(reg) word, in(reg) value >> 32, options(nostack));
        }
    }
    fn add(&self, n: i64) {
        self.0.fetch_add(n, Relaxed);
    }
    fn add_return(&self, n: i64) -> i64 {
        self.0.fetch_add(n, Relaxed).wrapping_add(n)
    }
}

impl Way for SetInHalves {
    fn make() -> Self {
        Self::default()
    }
}
