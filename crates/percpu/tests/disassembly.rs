//! What the hot operations compile to: no call, no lock, and no branch taken on the way.
//!
//! Each probe is a function that does one operation through a handle. It is decoded from its first
//! instruction on along the way that is taken when nothing comes in between, to its `ret`. Run with
//! `--nocapture` to see the listings.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![cfg(not(any(countersink_inject, countersink_portable)))]
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicI64, AtomicU64};

#[path = "common/code.rs"]
mod code;

use code::Code;
use countersink_percpu::local::{Local, LocalCounter};
use countersink_percpu::{PairSlot, Slot};

/// Probes, and for each the most instructions before its `ret` and the most branches, none taken.
macro_rules! probes {
    ($($name:ident($($operand:ident: $type:ty),*) $(-> $result:ty)? = $body:expr;
        $instructions:literal, $branches:literal;)*) => {
        $(
            #[inline(never)]
            fn $name($($operand: $type),*) $(-> $result)? {
                $body
            }
        )*

        fn probes() -> Vec<(Code, usize, usize)> {
            vec![$((
                Code::of(
                    stringify!($name),
                    std::hint::black_box($name as fn($($type),*) $(-> $result)?) as *const (),
                ),
                $instructions,
                $branches,
            )),*]
        }
    };
}

probes! {
    add(slot: Slot<'_>, n: u64) = slot.add(n); 9, 1;
    inc(slot: Slot<'_>) = slot.inc(); 9, 1;
    add_release(slot: Slot<'_>, n: u64) = slot.add_release(n); 9, 1;
    add_return(slot: Slot<'_>, n: u64) -> u64 = slot.add_return(n); 13, 2;
    compare_exchange(slot: Slot<'_>, old: u64, new: u64) -> bool = slot.compare_exchange(old, new).is_ok(); 16, 3;
    exchange(slot: Slot<'_>, new: u64) -> u64 = slot.exchange(new); 12, 2;
    store_min(slot: Slot<'_>, v: u64) -> bool = slot.store_min(v); 16, 3;
    store_max(slot: Slot<'_>, v: u64) -> bool = slot.store_max(v); 16, 3;
    store_min_signed(slot: Slot<'_, i64>, v: i64) -> bool = slot.store_min(v); 16, 3;
    store_max_signed(slot: Slot<'_, i64>, v: i64) -> bool = slot.store_max(v); 16, 3;
    add_unless(slot: Slot<'_>, n: u64, guard: &AtomicU64) -> bool = slot.add_unless(n, guard); 14, 2;
    add_within(pair: PairSlot<'_>, n: u64, most: u64) -> bool = pair.add_within(n, most); 20, 2;
    try_add_within(pair: PairSlot<'_>, n: u64, most: u64) -> bool = pair.try_add_within(n, most); 20, 2;
    add_within_at_most(pair: PairSlot<'_>, n: u64, most: u64, guard: &AtomicI64, limit: i64) -> bool = pair.add_within_at_most(n, most, guard, limit); 26, 3;
    add_pair(pair: PairSlot<'_>, a: u64, b: u64) = pair.add([a, b]); 14, 1;
    compare_exchange_pair(pair: PairSlot<'_>, old: &[u64; 2], new: &[u64; 2]) -> bool = pair.compare_exchange(*old, *new).is_ok(); 34, 4;
    local_inc(local: &Local) = local.inc(); 1, 0;
    local_add(local: &Local, n: i64) = local.add(n); 1, 0;
    local_add_return(local: &Local, n: i64) -> i64 = local.add_return(n); 3, 0;
    local_read(local: &Local) -> i64 = local.read(); 1, 0;
}

#[test]
fn hot_operations_go_straight() {
    for (code, instructions, branches) in probes() {
        println!("{}", code.listing());
        code.assert_straight(0);
        code.assert_at_most(instructions, branches);
    }
}

/// The commit of an add is its last instruction, and adds to memory in one.
#[test]
fn an_add_commits_by_one_instruction() {
    for (code, ..) in probes()
        .iter()
        .filter(|(code, ..)| ["add", "inc"].contains(&code.name))
    {
        assert_eq!(code.branches(), 1, "{}", code.listing());
        let last = code.instructions.last().expect("it is not empty");
        assert_eq!(
            last.mnemonic(),
            iced_x86::Mnemonic::Add,
            "{}",
            code.listing()
        );
        assert_eq!(
            last.op_kind(0),
            iced_x86::OpKind::Memory,
            "{}",
            code.listing()
        );
    }
}

/// What the checks would find.
#[test]
fn mutants_are_found() {
    #[inline(never)]
    fn locked(word: &AtomicU64) {
        word.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    #[inline(never)]
    fn exchanged(word: &AtomicU64) -> u64 {
        word.swap(1, std::sync::atomic::Ordering::Relaxed)
    }
    #[inline(never)]
    fn calls(f: &dyn Fn() -> u64) -> u64 {
        f() + 1
    }
    let code = |name, function| Code::of(name, std::hint::black_box(function));
    let mutants: [Code; 3] = [
        code("locked", locked as *const ()),
        code("exchanged", exchanged as *const ()),
        code("calls", calls as *const ()),
    ];
    for mutant in mutants {
        let found = std::panic::catch_unwind(|| mutant.assert_straight(0)).is_err();
        assert!(found, "{}", mutant.listing());
    }
}

/// The exchange of 16 bytes puts a value of its own into rbx, so its address must be elsewhere.
/// Where the compiler had the choice, it took rbx in some functions and not in others.
#[test]
fn no_exchange_of_16_bytes_has_its_address_in_rbx() {
    let segment = countersink_percpu::Segment::private().expect("memory");
    let pair = segment.pair::<u64>(0).expect("a pair");
    pair.add([1, 2]);
    assert_eq!(pair.replace([0, 0]), [1, 2]);

    let mut found = 0;
    for line in std::fs::read_to_string("/proc/self/maps")
        .expect("maps")
        .lines()
    {
        let Some((range, rest)) = line.split_once(' ') else {
            continue;
        };
        if !rest.starts_with("r-xp") || !rest.contains("disassembly") {
            continue;
        }
        let address = |text: &str| usize::from_str_radix(text, 16).expect("an address");
        let (start, end) = range.split_once('-').expect("a range");
        let (start, end) = (address(start), address(end));
        // SAFETY: this program's own code, mapped and readable.
        let code = unsafe { core::slice::from_raw_parts(start as *const u8, end - start) };
        // lock cmpxchg16b, with a prefix that says 64 bits; the last byte says where the address is.
        for bytes in code.windows(5) {
            if bytes[0] == 0xf0 && bytes[1] & 0xfe == 0x48 && bytes[2..4] == [0x0f, 0xc7] {
                assert_eq!((bytes[1], bytes[4]), (0x48, 0x0f), "not by rdi: {bytes:x?}");
                found += 1;
            }
        }
    }
    assert!(found > 0, "no exchange found");
}
