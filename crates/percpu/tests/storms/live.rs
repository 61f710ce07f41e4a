//! Variables that live in registers across an operation are what they were behind it, also where
//! the operation was aborted, repeated, and ended on another lane.

use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicI64, AtomicU64};

use countersink_percpu::{PairSlot, Segment, Slot};
use libc::{EPERM, SIGUSR2, c_int};

use crate::common::child::{self, Setting};
use crate::common::signals;
use crate::timer::Timer;

/// Operations of each kind.
const ROUNDS: u64 = 400_000;
/// A short period: an abort every few thousand operations.
const PERIOD_NS: std::ffi::c_long = 20_000;

/// Carries 14 integers and 10 floats through `ROUNDS` operations; each depends on the others, so
/// all are live all the time.
#[inline(always)]
fn carry(seed: u64, operation: impl Fn(u64)) -> ([u64; 14], [u64; 10]) {
    let mut x: [u64; 14] = core::array::from_fn(|i| seed.wrapping_mul(i as u64 + 1));
    let mut y: [f64; 10] = core::array::from_fn(|i| i as f64 + 0.5);
    for round in 0..ROUNDS {
        macro_rules! step {
            ($($i:literal)*) => {$(
                x[$i] = x[$i].rotate_left($i + 1).wrapping_add(x[($i + 1) % 14]);
            )*};
        }
        macro_rules! halve {
            ($($i:literal)*) => {$(
                y[$i] = y[$i] * 0.5 + y[($i + 1) % 10] + 1.0 / 3.0;
                if y[$i] > 1e6 {
                    y[$i] *= 1e-6;
                }
            )*};
        }
        step!(0 1 2 3 4 5 6);
        halve!(0 1 2 3 4);
        operation(round);
        step!(7 8 9 10 11 12 13);
        operation(!round);
        halve!(5 6 7 8 9);
    }
    (x, y.map(f64::to_bits))
}

/// One function for each operation, all of its code inlined.
macro_rules! carried {
    ($seed:expr, $slot:ident, $pair:ident, $guard:ident, $n:ident; $($name:literal: $operation:expr;)*) => {{
        let expected = carry($seed, |n| { black_box(n); });
        $({
            #[inline(never)]
            #[allow(unused_variables, reason = "no operation needs all of them")]
            fn one(seed: u64, $slot: Slot<'_>, $pair: PairSlot<'_>, $guard: &AtomicU64) -> ([u64; 14], [u64; 10]) {
                carry(seed, |$n| { let _ = black_box($operation); })
            }
            let carried = one($seed, $slot, $pair, &$guard);
            assert!(carried == expected, "{}: {carried:?} instead of {expected:?}", $name);
        })*
    }};
}

fn every_operation(seed: u64) {
    let segment = Segment::private().expect("memory");
    let slot = segment.slot::<u64>(0).expect("a word");
    let pair = segment.pair::<u64>(1).expect("a pair");
    let guard = AtomicU64::new(0);
    carried! {
        seed, slot, pair, guard, n;
        "inc": slot.inc();
        "add": slot.add(n);
        "add_release": slot.add_release(n);
        "add_return": slot.add_return(n);
        "compare_exchange, mismatch": slot.compare_exchange(n, 1);
        "compare_exchange, match": slot.compare_exchange(slot.exchange(n), n);
        "exchange": slot.exchange(n);
        "store_min": slot.store_min(n);
        "store_max": slot.store_max(n);
        "add_unless": slot.add_unless(n, guard);
        "add_within, beyond": pair.add_within(n, 3);
        "add_within_at_most": pair.add_within_at_most(1, 1 << 62, &NEVER_ABOVE, 0);
        "add_pair": pair.add([n, 1]);
        "compare_exchange_pair, mismatch": pair.compare_exchange([n, 1], [2, 3]);
        "compare_exchange_pair, often": match pair.compare_exchange([n, 1], [!n, 1]) {
            Ok(held) => held,
            Err(held) => pair.compare_exchange(held, [n, 1]).unwrap_or_else(|held| held),
        };
    }
}

static NEVER_ABOVE: AtomicI64 = AtomicI64::new(0);
static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: c_int) {
    HANDLED.fetch_add(1, Relaxed);
}

/// All operations, with a timer for this thread and another thread that wants its CPU.
fn in_a_storm() -> u64 {
    let _exclusive = signals::exclusive();
    signals::handle(SIGUSR2, handler);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                std::thread::yield_now();
            }
        });
        let timer = Timer::start(SIGUSR2, PERIOD_NS);
        let carried = std::panic::catch_unwind(|| every_operation(0x11fe));
        drop(timer);
        stop.store(true, SeqCst);
        carried.expect("all variables are what they were");
    });
    println!("{} signals", HANDLED.load(SeqCst));
    assert!(HANDLED.load(SeqCst) > 0);
    HANDLED.load(SeqCst)
}

#[test]
fn variables_survive() {
    in_a_storm();
}

#[test]
fn variables_survive_in_other_settings() {
    for setting in [Setting::OwnRegistration, Setting::Refused(EPERM)] {
        child::run_chosen(
            "live::variables_survive_in_other_settings",
            setting,
            in_a_storm,
        );
    }
}
