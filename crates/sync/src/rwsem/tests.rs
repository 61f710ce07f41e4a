//! Handing over, counted in turns, with a look at the word.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use super::state::HANDOFF;
use super::*;

/// So often readers come in past a writer before it is said to starve.
const MANY: u64 = 100_000;

/// Two readers, each of which leaves when the other has come in, so that the lock is never free; or when the lock is to be handed
/// over, since then the other cannot. How often they came in while a writer waited, and how often after that was asked for.
fn pass_a_writer() -> [u64; 2] {
    let lock: RawRwSem = RawRwSem::new();
    let entered = [const { AtomicU64::new(0) }; 2];
    let (waits, asked, written) = (
        AtomicU64::new(0),
        AtomicU64::new(u64::MAX),
        AtomicU64::new(0),
    );
    let sum = || {
        entered
            .iter()
            .map(|entered| entered.load(SeqCst))
            .sum::<u64>()
    };
    let is_asked = || lock.state.load(SeqCst) & HANDOFF != 0;
    let goes_on = || written.load(SeqCst) == 0 && sum() - waits.load(SeqCst).min(sum()) < MANY;
    std::thread::scope(|scope| {
        let (lock, entered, asked, goes_on) = (&lock, &entered, &asked, &goes_on);
        for reader in 0..2 {
            scope.spawn(move || {
                while goes_on() {
                    lock.lock_shared();
                    let others = entered[1 - reader].load(SeqCst);
                    entered[reader].fetch_add(1, SeqCst);
                    while entered[1 - reader].load(SeqCst) == others && goes_on() {
                        if is_asked() {
                            asked.fetch_min(sum(), SeqCst);
                            break;
                        }
                        std::thread::yield_now();
                    }
                    // SAFETY: locked above.
                    #[allow(unsafe_code)]
                    unsafe {
                        lock.unlock_shared();
                    }
                }
            });
        }
        while entered.iter().any(|entered| entered.load(SeqCst) < 100) {
            std::thread::yield_now();
        }
        waits.store(sum(), SeqCst);
        // One that starves is let in when the readers stop.
        lock.lock_exclusive();
        let at = sum();
        written.store(at.max(1), SeqCst);
        // SAFETY: locked above.
        #[allow(unsafe_code)]
        unsafe {
            lock.unlock_exclusive();
        }
    });
    let at = written.load(SeqCst);
    let after = at.saturating_sub(asked.load(SeqCst));
    [at - waits.load(SeqCst), after]
}

#[test]
fn a_writer_is_handed_the_lock() {
    for _ in 0..20 {
        let [passed, after] = pass_a_writer();
        println!("{passed} readers came in before the writer, {after} of them after it had asked");
        assert!(passed < MANY);
        // Those who had come in, or were counted, when it asked.
        assert!(after <= 2, "{after}");
    }
    mutants::set(mutants::NO_HANDOFF);
    let [passed, _] = pass_a_writer();
    mutants::set(0);
    println!("{passed} readers came in before a writer that does not ask");
    assert!(
        passed >= MANY,
        "a lock that does not hand over was not found"
    );
}
