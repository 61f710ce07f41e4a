//! How large call sites are, in line and out of line, as the seed's second mail asks of the kernel.
//!
//! Each way has functions with one call site and with many, so their difference is what a call site costs. Their sizes are those of
//! this program's own symbols.

use std::collections::BTreeMap;

use countersink::{BatchCounter, Member, TreeCounter};

use super::kernel::{Handle, Kernel, Nested};
use super::ways::Way;

/// Call sites of the larger functions.
pub const SITES: usize = 33;

static CARRY: BatchCounter = BatchCounter::new("bench_size");
static TREE: TreeCounter = TreeCounter::new("bench_size_tree");

/// The sizes of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The way, and whether its fast path is in line.
    pub way: &'static str,
    /// Bytes of code of each call site.
    pub site: u64,
    /// Bytes of a function with [`SITES`] of them.
    pub many: u64,
}

/// Repeats a statement 32 times.
macro_rules! times_32 {
    (@8 $body:block) => {
        $body $body $body $body $body $body $body $body
    };
    ($body:block) => {
        times_32!(@8 $body);
        times_32!(@8 $body);
        times_32!(@8 $body);
        times_32!(@8 $body);
    };
}

/// A function with one call site and one with [`SITES`], and their names.
macro_rules! probes {
    ($($way:literal: $one:ident, $many:ident ($($name:ident: $type:ty),*) $body:block)*) => {
        $(
            #[inline(never)]
            fn $one($($name: $type),*) $body

            #[inline(never)]
            fn $many($($name: $type),*) {
                times_32!($body);
                $body
            }
        )*

        /// The way, and the names of its functions.
        const PROBES: &[(&str, &str, &str)] = &[$(($way, stringify!($one), stringify!($many))),*];

        /// Keeps the functions in the program.
        fn keep() {
            $(
                std::hint::black_box($one as fn($($type),*));
                std::hint::black_box($many as fn($($type),*));
            )*
        }
    };
}

#[inline(never)]
fn carry_by_call(member: Member<'_>, n: i64) {
    member.add(n);
}

#[inline(never)]
fn static_by_call(n: i64) {
    CARRY.add(n);
}

#[inline(never)]
fn kernel_by_call(handle: Handle<'_>, n: i64) {
    Kernel::add(handle, n);
}

#[inline(never)]
fn nested_by_call(handle: Handle<'_>, n: i64) {
    Nested::add(handle, n);
}

probes! {
    "carry, in line": size_carry_one, size_carry_many (member: Member<'_>, n: i64) { member.add(n); }
    "carry, by call": size_carry_call_one, size_carry_call_many (member: Member<'_>, n: i64) { carry_by_call(member, n); }
    "carry-static, in line": size_static_one, size_static_many (n: i64) { CARRY.add(n); }
    "carry-static, by call": size_static_call_one, size_static_call_many (n: i64) { static_by_call(n); }
    "tree, in line": size_tree_one, size_tree_many (n: i64) { TREE.add(n); }
    "kernel, in line": size_kernel_one, size_kernel_many (handle: Handle<'_>, n: i64) { Kernel::add(handle, n); }
    "kernel, by call": size_kernel_call_one, size_kernel_call_many (handle: Handle<'_>, n: i64) { kernel_by_call(handle, n); }
    "kernel-nested, in line": size_nested_one, size_nested_many (handle: Handle<'_>, n: i64) { Nested::add(handle, n); }
    "kernel-nested, by call": size_nested_call_one, size_nested_call_many (handle: Handle<'_>, n: i64) { nested_by_call(handle, n); }
}

/// The sizes, from those of all symbols by their names; `None` if the program has none.
///
/// A name here is the last part of a path, as compilers write it into symbols.
pub fn sizes(symbols: &BTreeMap<String, u64>) -> Option<Vec<Size>> {
    keep();
    let size = |name: &str| {
        let is_it = |symbol: &&String| symbol.contains(&format!("{}{name}", name.len()));
        symbols
            .keys()
            .find(is_it)
            .and_then(|found| symbols.get(found).copied())
    };
    PROBES
        .iter()
        .map(|(way, one, many)| {
            let (one, many) = (size(one)?, size(many)?);
            let site = many.saturating_sub(one) / (SITES as u64 - 1);
            Some(Size { way, site, many })
        })
        .collect()
}
