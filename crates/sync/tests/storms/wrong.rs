//! Locks that let somebody in beside a writer: the storm has to find them, or it would find nothing.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};

use countersink_percpu::{Fence, Segment};

use super::{Random, Twins};

const SEED: u64 = 0x3206_0005;
const WRITES: u64 = 20_000;
const READERS: usize = 3;

/// Lets others run so often.
fn wait(turns: u64) {
    (0..turns).for_each(|_| std::thread::yield_now());
}

/// Readers beside so many writes, until something torn is seen; whether it was. All wait where others have to come in between for that, now
/// shorter and now longer, so that it does not depend on luck, nor on threads that take turns in step.
fn is_torn(read: impl Fn(usize, &dyn Fn()) + Sync, write: impl Fn(&dyn Fn()) + Sync) -> bool {
    let twins = Twins::default();
    let (torn, written) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for reader in 0..READERS {
            let (twins, torn, written, read) = (&twins, &torn, &written, &read);
            scope.spawn(move || {
                let mut random = Random(SEED + reader as u64);
                while !written.load(Relaxed) {
                    let turns = random.below(6);
                    read(reader, &|| {
                        let first = twins.get();
                        wait(turns);
                        if first.is_err() || first != twins.get() {
                            torn.fetch_add(1, Relaxed);
                        }
                    });
                    std::thread::yield_now();
                }
            });
        }
        let (twins, torn, written, write) = (&twins, &torn, &written, &write);
        scope.spawn(move || {
            let mut random = Random(SEED);
            for _ in 0..WRITES {
                let turns = random.below(6);
                write(&|| {
                    wait(turns);
                    twins.add();
                });
                std::thread::yield_now();
                if torn.load(Relaxed) > 0 {
                    break;
                }
            }
            written.store(true, Relaxed);
        });
    });
    torn.into_inner() > 0
}

/// A percpu lock in its essence, with or without its parts.
struct Parts {
    segment: Segment,
    flag: AtomicU64,
    fence: Option<Fence>,
    /// Looks at the flag before the section instead of in it, and waits there for others.
    looks_outside: bool,
}

impl Parts {
    fn new(fence: Option<Fence>, looks_outside: bool) -> Self {
        Parts {
            segment: Segment::private().expect("memory"),
            flag: AtomicU64::new(0),
            fence,
            looks_outside,
        }
    }

    fn read(&self, body: &dyn Fn()) {
        let readers = self.segment.slot::<u64>(0).expect("a word");
        let is_in = if self.looks_outside {
            let is_down = self.flag.load(Acquire) == 0;
            std::thread::yield_now();
            if is_down {
                readers.add(1);
            }
            is_down
        } else {
            readers.add_unless(1, &self.flag)
        };
        if is_in {
            body();
            readers.add_release(u64::MAX);
        }
    }

    fn write(&self, body: &dyn Fn()) {
        let readers = self.segment.slot::<u64>(0).expect("a word");
        self.flag.store(1, SeqCst);
        if let Some(fence) = self.fence {
            fence.all_cpus().expect("registered");
        }
        while readers.sum() != 0 {
            std::thread::yield_now();
        }
        body();
        self.flag.store(0, Release);
    }

    fn is_torn(&self) -> bool {
        is_torn(|_, body| self.read(body), |body| self.write(body))
    }
}

#[test]
fn a_flag_that_is_seen_outside_of_the_section() {
    let Ok(fence) = Fence::new() else {
        println!("there is no fence here");
        return;
    };
    assert!(!Parts::new(Some(fence), false).is_torn(), "right as it is");
    assert!(Parts::new(Some(fence), true).is_torn(), "not found");
}

/// A reader that only looks whether there is a writer.
#[test]
fn a_reader_that_does_not_count_itself() {
    let writer = AtomicU64::new(0);
    let found = is_torn(
        |_, body| {
            if writer.load(Acquire) == 0 {
                body();
            }
        },
        |body| {
            writer.store(1, SeqCst);
            body();
            writer.store(0, Release);
        },
    );
    assert!(found);
}
