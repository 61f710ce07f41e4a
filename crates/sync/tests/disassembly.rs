//! What taking and leaving a free lock compiles to: one locked instruction each, no call, nothing for events that nobody counts; and
//! for readers of `PercpuRwSem` none at all.
//!
//! Run with `--nocapture` to see the listings.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(loom)))]
#![cfg(not(any(countersink_inject, countersink_portable)))]
#![allow(unsafe_code)]

#[path = "../../percpu/tests/common/code.rs"]
mod code;

use code::Code;
use countersink_sync::lock_api::RawRwLock;
use countersink_sync::rwsem::{AddFirst, DefaultTryRead, LoadFirst, OwnershipFirst};
use countersink_sync::{RawPercpuRwSem, RawRwSem};

countersink_sync::lock_events! { COUNTED: Counted = "disassembly_lock" }

type Plain = RawRwSem;
type Counts = RawRwSem<DefaultTryRead, Counted>;

/// Functions that do one thing to a lock, with how many locked instructions that takes, and how many instructions and branches
/// before its `ret` at most.
macro_rules! probes {
    ($($name:ident: $lock:ty = $body:expr; $locked:literal, $instructions:literal, $branches:literal;)*) => {
        $(
            #[inline(never)]
            fn $name(lock: &$lock) -> bool {
                let act: fn(&$lock) -> bool = $body;
                act(lock)
            }
        )*

        fn probes() -> Vec<(Code, usize, usize, usize)> {
            vec![$((
                Code::of(
                    stringify!($name),
                    std::hint::black_box($name as fn(&$lock) -> bool) as *const (),
                ),
                $locked,
                $instructions,
                $branches,
            )),*]
        }
    };
}

/// As a reader.
#[inline(always)]
fn leave(lock: &impl RawRwLock) -> bool {
    // SAFETY: not run, but looked at.
    unsafe { lock.unlock_shared() };
    true
}

/// As the writer.
#[inline(always)]
fn leave_as_writer(lock: &impl RawRwLock) -> bool {
    // SAFETY: not run, but looked at.
    unsafe { lock.unlock_exclusive() };
    true
}

probes! {
    read: Plain = |lock| { lock.lock_shared(); true }; 1, 5, 1;
    unlock_read: Plain = |lock| leave(lock); 1, 3, 1;
    write: Plain = |lock| { lock.lock_exclusive(); true }; 1, 5, 1;
    unlock_write: Plain = |lock| leave_as_writer(lock); 1, 3, 1;
    try_read_adding: RawRwSem<AddFirst> = |lock| lock.try_lock_shared(); 1, 7, 1;
    percpu_read: RawPercpuRwSem = |lock| { lock.lock_shared(); true }; 0, 22, 3;
    percpu_unlock_read: RawPercpuRwSem = |lock| leave(lock); 0, 20, 3;
}

#[test]
fn a_free_lock_is_one_locked_instruction() {
    for (code, locked, instructions, branches) in probes() {
        println!("{}", code.listing());
        code.assert_straight(locked);
        code.assert_at_most(instructions, branches);
    }
}

/// Those whose way goes by a branch that is taken are only counted.
#[test]
fn every_form_of_try_read_has_one_locked_instruction_where_the_lock_is_free() {
    use iced_x86::{Decoder, DecoderOptions, Instruction};

    #[inline(never)]
    fn ownership(lock: &RawRwSem<OwnershipFirst>) -> bool {
        lock.try_lock_shared()
    }
    #[inline(never)]
    fn load(lock: &RawRwSem<LoadFirst>) -> bool {
        lock.try_lock_shared()
    }
    for function in [
        ownership as fn(&_) -> _ as *const (),
        load as fn(&_) -> _ as *const (),
    ] {
        let function = std::hint::black_box(function);
        // SAFETY: the text of this program goes on for longer than that.
        let bytes = unsafe { core::slice::from_raw_parts(function.cast::<u8>(), 128) };
        let decoder = Decoder::with_ip(64, bytes, function as u64, DecoderOptions::NONE);
        let body: Vec<Instruction> = decoder.into_iter().collect();
        // Up to the padding behind the function.
        let end = body
            .iter()
            .position(|i| i.mnemonic() == iced_x86::Mnemonic::Int3);
        let body = &body[..end.unwrap_or(body.len())];
        let locked = body.iter().filter(|i| i.has_lock_prefix()).count();
        assert!(locked >= 1, "{locked}");
    }
}

/// Whether a lock counts events is all that differs, and it shows: a section looks at the thread's area, through `fs`.
#[test]
fn events_that_nobody_counts_are_no_code() {
    #[inline(never)]
    fn plain(lock: &Plain) -> bool {
        lock.try_lock_exclusive()
    }
    #[inline(never)]
    fn counted(lock: &Counts) -> bool {
        lock.try_lock_exclusive()
    }
    let sections = |code: &Code| code.count(|i| i.segment_prefix() == iced_x86::Register::FS);
    let plain = Code::of(
        "plain",
        std::hint::black_box(plain as fn(&_) -> _) as *const (),
    );
    let counted = Code::of(
        "counted",
        std::hint::black_box(counted as fn(&_) -> _) as *const (),
    );
    println!("{}{}", plain.listing(), counted.listing());
    assert_eq!(
        (sections(&plain), plain.locked()),
        (0, 1),
        "{}",
        plain.listing()
    );
    assert!(sections(&counted) >= 2, "{}", counted.listing());
    plain.assert_at_most(8, 1);
}
