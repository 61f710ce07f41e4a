//! Each way against a plain `i64`: one thread, no signals. And what the types promise.

use std::any::TypeId;

use countersink_percpu::Lane;
use countersink_percpu::local::{
    Atomic, Context, Local, LocalCount, LocalCounter, PerCpu, TriValue, trivalue,
};
#[cfg(unix)]
use countersink_percpu::local::{Deferred, Sigmask};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::ways::{Way, for_each_way};

/// The seed of every run; a failure prints the operations, shrunk.
const SEED: [u8; 32] = *b"local counters against one i64..";

#[derive(Clone, Copy, Debug)]
enum Op {
    Set(i64),
    Inc,
    Dec,
    Add(i64),
    Sub(i64),
    AddReturn(i64),
}

fn values() -> impl Strategy<Value = i64> {
    let edges = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
    prop_oneof![
        proptest::sample::select(Vec::from(edges)),
        any::<i64>(),
        -9..9_i64
    ]
}

fn operations() -> impl Strategy<Value = Vec<Op>> {
    let one = prop_oneof![
        values().prop_map(Op::Set),
        Just(Op::Inc),
        Just(Op::Dec),
        values().prop_map(Op::Add),
        values().prop_map(Op::Sub),
        values().prop_map(Op::AddReturn),
    ];
    proptest::collection::vec(one, 0..40)
}

/// A way whose `add_return` can be checked: against the counter, or against its lanes.
trait Returns: Way {
    /// Whether `add_return` may have returned `result`, given the counter's value.
    fn may_return(&self, result: i64, value: i64) -> bool {
        result == value
    }
}

impl Returns for Atomic {}
#[cfg(unix)]
impl Returns for Sigmask {}
#[cfg(unix)]
impl Returns for Deferred {}
impl Returns for TriValue {}
impl Returns for Local {}
impl Returns for PerCpu<'static> {
    /// One of the lanes now holds it; which one, only the CPU knows.
    fn may_return(&self, result: i64, _: i64) -> bool {
        let cpus = (0..).map(Lane::Cpu);
        let lanes = std::iter::once(Lane::Shared).chain(cpus);
        let held = lanes.map_while(|lane| self.0.load(lane));
        held.into_iter().any(|held| held == result)
    }
}

fn matches_a_plain_i64<W: Returns>() {
    let config = Config {
        cases: 256,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &SEED);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let seed = String::from_utf8_lossy(&SEED);
    println!("{}: 256 sequences of operations, seed {seed:?}", W::NAME);
    let result = runner.run(&operations(), |operations| {
        let (counter, mut model) = (W::make(), 0_i64);
        prop_assert_eq!(counter.read(), 0);
        for op in operations {
            match op {
                Op::Set(value) => (model, _) = (value, counter.set(value)),
                Op::Inc => (model, _) = (model.wrapping_add(1), counter.inc()),
                Op::Dec => (model, _) = (model.wrapping_sub(1), counter.dec()),
                Op::Add(n) => (model, _) = (model.wrapping_add(n), counter.add(n)),
                Op::Sub(n) => (model, _) = (model.wrapping_sub(n), counter.sub(n)),
                Op::AddReturn(n) => {
                    model = model.wrapping_add(n);
                    let result = counter.add_return(n);
                    prop_assert!(counter.may_return(result, model), "returned {result}");
                }
            }
            prop_assert_eq!(counter.read(), model);
        }
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{}: {failure}", W::NAME));
}
for_each_way!(matches_a_plain_i64);

#[test]
fn sizes() {
    assert_eq!((Atomic::BYTES, size_of::<Atomic>()), (8, 8));
    #[cfg(unix)]
    assert_eq!((Sigmask::BYTES, size_of::<Sigmask>()), (8, 8));
    #[cfg(unix)]
    assert_eq!((Deferred::BYTES, size_of::<Deferred>()), (8, 8));
    assert_eq!((Local::BYTES, size_of::<Local>()), (8, 8));
    assert_eq!((TriValue::BYTES, size_of::<TriValue>()), (24, 24));
    assert_eq!(PerCpu::BYTES, 8);
}

#[test]
fn only_ways_that_no_fault_can_cut_in_two_are_for_fault_handlers() {
    let everywhere = [
        Context::Thread,
        Context::Handler,
        Context::NestedHandler,
        Context::FaultHandler,
    ];
    assert_eq!(Atomic::CONTEXTS, everywhere);
    assert_eq!(TriValue::CONTEXTS, everywhere);
    assert_eq!(Local::CONTEXTS, everywhere);
    assert_eq!(PerCpu::CONTEXTS, everywhere);
    #[cfg(unix)]
    assert_eq!(Sigmask::CONTEXTS, &everywhere[..3]);
    #[cfg(unix)]
    assert_eq!(Deferred::CONTEXTS, &everywhere[..3]);
}

#[test]
fn local_count_is_the_way_that_suits_the_architecture() {
    let one_instruction = cfg!(target_arch = "x86_64");
    let expected = if one_instruction {
        TypeId::of::<Local>()
    } else {
        TypeId::of::<TriValue>()
    };
    assert_eq!(TypeId::of::<LocalCount>(), expected);
}

/// Fails to compile if `$type` implements `$trait`: `AmbiguousIf` then applies in two ways.
macro_rules! is_not {
    ($trait:ident: $($type:ty),*) => {
        const _: () = {
            trait AmbiguousIf<Marker> {
                fn check() {}
            }
            struct Implemented;
            impl<T: ?Sized> AmbiguousIf<()> for T {}
            impl<T: ?Sized + $trait> AmbiguousIf<Implemented> for T {}
            $(let _ = <$type as AmbiguousIf<_>>::check;)*
        };
    };
}

const fn is_send<T: Send>() {}
const fn is_sync<T: Sync>() {}

// A thread-owned counter may move to another thread, but only one at a time may have it.
is_not!(Sync: Local, TriValue);
#[cfg(unix)]
is_not!(Sync: Sigmask, Deferred);
// A handler's context is the thread's that it interrupted.
is_not!(Send: trivalue::Context);

const _: () = {
    is_send::<Local>();
    is_send::<TriValue>();
    is_send::<Atomic>();
    is_sync::<Atomic>();
    is_send::<PerCpu<'static>>();
    is_sync::<PerCpu<'static>>();
};
#[cfg(unix)]
const _: () = {
    is_send::<Sigmask>();
    is_send::<Deferred>();
};
