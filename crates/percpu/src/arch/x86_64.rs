//! x86-64 sections.
//!
//! The shape of each, in the order in which it runs:
//!
//! ```text
//! 2:  lea   t, [rip + descriptor]      the descriptor says: from 2 to 3, abort at 4
//!     mov   fs:[area + 8], t           from here on the kernel watches
//!     mov   t, fs:[area + 4]           the CPU number, loaded inside the section
//!     cmp   t, lanes                   not below the lane count (or not registered): leave
//!     jae   cold
//!     shl   t, 16                      the lane's distance from the lane of CPU 0
//!     ...                              loads and comparisons
//!     mov   [word + t], value          the commit: one store, the section's last instruction
//! 3:
//! ```
//!
//! The abort handler lies in a section of its own, behind the signature that the kernel checks,
//! and leaves by the cold path as well; attempts are repeated and counted there. Operations
//! without a result leave by `label`; those with one report through `t`, which is a lane's
//! distance, never negative, when the section ran to its end.
#![allow(unsafe_code)]

use core::arch::x86_64::{__m128i, _mm_set_epi64x};
use core::arch::{asm, global_asm};

use super::{At, Attempt};

// A thread's own area for `struct rseq`, used where the C library has none, followed by the state
// of its registration. Its CPU number says "not registered" from the start, so that a thread that
// nobody has prepared leaves a section for the cold path. It lies in static TLS: its distance from
// the thread pointer is one number for all threads, and no code runs to find it.
//
// The symbol is hidden: each executable or library that contains this code has its own. It carries
// the version, so that two versions in one executable do not collide.
macro_rules! own_area {
    () => {
        concat!(
            "__countersink_percpu_area_",
            env!("CARGO_PKG_VERSION_MAJOR"),
            "_",
            env!("CARGO_PKG_VERSION_MINOR"),
            "_",
            env!("CARGO_PKG_VERSION_PATCH")
        )
    };
}

global_asm!(
    r#".pushsection .tdata.countersink_percpu, "awT", @progbits"#,
    ".balign 64",
    concat!(".globl ", own_area!()),
    concat!(".hidden ", own_area!()),
    concat!(".type ", own_area!(), ", @object"),
    concat!(".size ", own_area!(), ", 80"),
    concat!(own_area!(), ":"),
    ".long 0",          // cpu_id_start
    ".long 0xffffffff", // cpu_id: not registered
    ".quad 0",          // rseq_cs
    ".long 0, 0, 0, 0", // flags, node_id, mm_cid, padding
    ".long 0",          // the state of the registration
    ".balign 64",
    ".long 0, 0xffffffff", // what sections see that must never run: a thread not registered
    ".quad 0",
    ".popsection",
);

/// Where a thread's own area is, counted from its thread pointer.
pub(crate) fn own_area() -> i32 {
    let offset: isize;
    // SAFETY: loads a number that the linker or the loader has put there.
    unsafe {
        asm!(
            concat!("mov {}, qword ptr [rip + ", own_area!(), "@GOTTPOFF]"),
            out(reg) offset,
            options(nostack, preserves_flags, pure, readonly),
        );
    }
    offset as i32
}

/// Where a thread has an area that is never registered: a handle that carries it runs no section.
pub(crate) fn closed_area() -> i32 {
    own_area() + 64
}

/// The address of what lies `offset` bytes from this thread's thread pointer.
pub(crate) fn thread_address(offset: i32) -> *mut u8 {
    let base: *mut u8;
    // SAFETY: the first word of the thread control block is its own address (psABI).
    unsafe { asm!("mov {}, fs:[0]", out(reg) base, options(nostack, preserves_flags, readonly)) };
    base.wrapping_offset(offset as isize)
}

/// The offset and size of the C library's `struct rseq`, where it has one (glibc 2.35 and later).
pub(crate) fn libc_area() -> Option<(i32, u32)> {
    let (offset, size): (*const isize, *const u32);
    // SAFETY: loads two addresses, null where the weak symbols are not defined.
    unsafe {
        asm!(
            ".weak __rseq_offset",
            ".weak __rseq_size",
            "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
            offset = out(reg) offset,
            size = out(reg) size,
            options(nostack, preserves_flags, readonly),
        );
    }
    if offset.is_null() || size.is_null() {
        return None;
    }
    // SAFETY: the C library defines them as ptrdiff_t and unsigned int, constant once it has started.
    unsafe { Some((offset.read() as i32, size.read())) }
}

/// Where the test build disturbs a section; nothing otherwise.
#[cfg(not(countersink_inject))]
macro_rules! inject {
    ($point:literal) => {
        ""
    };
}

/// Point `n` has two words in `inject::POINTS`: whether it is armed, and how many passes are left before
/// it traps. The trap's handler does what the test wants (nothing, yield, sleep, raise); like any
/// signal, it makes the section abort. An armed point also delays, so that timers hit it.
#[cfg(countersink_inject)]
macro_rules! inject {
    ($point:literal) => {
        concat!(
            "cmp dword ptr [rip + countersink_inject_points + 8 * ",
            $point,
            "], 0\n",
            "je 8f\n",
            "pause\npause\npause\npause\n",
            "sub dword ptr [rip + countersink_inject_points + 4 + 8 * ",
            $point,
            "], 1\n",
            "jns 8f\n",
            "int3\n",
            "8:"
        )
    };
}

/// A section for an operation that returns nothing: `{aborted}` and `{no_lane}` are labels, so the
/// way to the commit has no branch that is taken.
macro_rules! section {
    ([$($body:tt)*], $($operands:tt)*) => {
        section_asm!(
            ["jae {no_lane}"], [$($body)*], ["jmp {aborted}"],
            aborted = label { return Attempt::Aborted },
            no_lane = label { return Attempt::NoLane },
            t = out(reg) _,
            $($operands)*
        )
    };
}

/// A section for an operation with results. Evaluates to `t`: the lane's distance, or one of the
/// two codes.
macro_rules! section_with_result {
    ([$($body:tt)*], $($operands:tt)*) => {{
        let t: i64;
        section_asm!(
            ["jae 5f"],
            [$($body)*],
            [concat!("mov {t}, ", -1), "jmp 3b", "5:", concat!("mov {t}, ", -2), "jmp 3b"],
            t = out(reg) t,
            $($operands)*
        );
        t
    }};
}

/// What both are made of.
macro_rules! section_asm {
    ([$jump:expr], [$($body:tt)*], [$($cold:expr),*], $($operands:tt)*) => {
        asm!(
            r#".pushsection __rseq_cs, "aw", @progbits"#,
            ".balign 32",
            "9:",
            ".long 0, 0",
            ".quad 2f, 3f - 2f, 4f",
            ".popsection",
            "2:",
            "lea {t}, [rip + 9b]",
            "mov qword ptr fs:[{area} + 8], {t}",
            inject!(1),
            "mov {t:e}, dword ptr fs:[{area} + 4]",
            inject!(2),
            "cmp {t:e}, {lanes:e}",
            $jump,
            inject!(3),
            "shl {t}, 16",
            inject!(4),
            $($body)*
            "3:",
            r#".pushsection .text.unlikely.countersink_percpu, "ax", @progbits"#,
            ".byte 0x0f, 0xb9, 0x3d",
            ".long 0x53053053",
            "4:",
            $($cold,)*
            ".popsection",
            $($operands)*
            options(nostack),
        )
    };
}

/// Turns `t` into an [`Attempt`].
#[inline(always)]
fn attempt<R>(t: i64, result: R) -> Attempt<R> {
    match t {
        ABORTED => Attempt::Aborted,
        NO_LANE => Attempt::NoLane,
        _ => Attempt::Done(result),
    }
}
const ABORTED: i64 = -1;
const NO_LANE: i64 = -2;

/// Adds 1.
///
/// # Safety
/// For this and every function below: see [`At`].
#[inline(always)]
pub(crate) unsafe fn inc(at: At) -> Attempt<()> {
    // SAFETY: the caller's promise; the section stores at `word` + lane only.
    unsafe {
        section!(["add qword ptr [{word} + {t}], 1",], word = in(reg) at.word, area = in(reg) at.area(), lanes = in(reg) at.lanes(),)
    };
    Attempt::Done(())
}

/// [`Op::Add`](crate::spec::Op::Add).
#[inline(always)]
pub(crate) unsafe fn add(at: At, n: u64) -> Attempt<()> {
    // SAFETY: as above.
    unsafe {
        section!(
            ["add qword ptr [{word} + {t}], {n}",],
            word = in(reg) at.word, area = in(reg) at.area(), lanes = in(reg) at.lanes(), n = in(reg) n,
        );
    }
    Attempt::Done(())
}

/// [`Op::Add`](crate::spec::Op::Add), the commit a release: every store here is one.
///
/// # Safety
/// As [`inc`].
#[inline(always)]
pub(crate) unsafe fn add_release(at: At, n: u64) -> Attempt<()> {
    // SAFETY: the caller's promise.
    unsafe { add(at, n) }
}

/// [`Op::AddReturn`](crate::spec::Op::AddReturn).
#[inline(always)]
pub(crate) unsafe fn add_return(at: At, n: u64) -> Attempt<u64> {
    let sum: u64;
    // SAFETY: as above.
    let t = unsafe {
        section_with_result!(
            [
                "mov {sum}, qword ptr [{word} + {t}]",
                inject!(5),
                "add {sum}, {n}",
                inject!(6),
                "mov qword ptr [{word} + {t}], {sum}",
            ],
            word = in(reg) at.word, area = in(reg) at.area(), lanes = in(reg) at.lanes(), n = in(reg) n, sum = out(reg) sum,
        )
    };
    attempt(t, sum)
}

/// [`Op::CompareExchange`](crate::spec::Op::CompareExchange): what the word held.
#[inline(always)]
pub(crate) unsafe fn compare_exchange(at: At, old: u64, new: u64) -> Attempt<u64> {
    let held: u64;
    // SAFETY: as above.
    let t = unsafe {
        section_with_result!(
            [
                "mov {held}, qword ptr [{word} + {t}]",
                inject!(5),
                "cmp {held}, {old}",
                "jne 3f",
                inject!(6),
                "mov qword ptr [{word} + {t}], {new}",
            ],
            word = in(reg) at.word, area = in(reg) at.area(), lanes = in(reg) at.lanes(), old = in(reg) old, new = in(reg) new, held = out(reg) held,
        )
    };
    attempt(t, held)
}

/// [`Op::Exchange`](crate::spec::Op::Exchange): what the word held.
#[inline(always)]
pub(crate) unsafe fn exchange(at: At, new: u64) -> Attempt<u64> {
    let held: u64;
    // SAFETY: as above.
    let t = unsafe {
        section_with_result!(
            [
                "mov {held}, qword ptr [{word} + {t}]",
                inject!(5),
                "mov qword ptr [{word} + {t}], {new}",
            ],
            word = in(reg) at.word, area = in(reg) at.area(), lanes = in(reg) at.lanes(), new = in(reg) new, held = out(reg) held,
        )
    };
    attempt(t, held)
}

/// The four minima and maxima differ in the jump that skips the commit.
macro_rules! store_if {
    ($(#[$doc:meta])* $name:ident, $skip:literal) => {
        $(#[$doc])*
        #[inline(always)]
        pub(crate) unsafe fn $name(at: At, value: u64) -> Attempt<u64> {
            let held: u64;
            // SAFETY: as above.
            let t = unsafe {
                section_with_result!(
                    [
                        "mov {held}, qword ptr [{word} + {t}]",
                        inject!(5),
                        "cmp {value}, {held}",
                        concat!($skip, " 3f"),
                        inject!(6),
                        "mov qword ptr [{word} + {t}], {value}",
                    ],
                    word = in(reg) at.word, area = in(reg) at.area(), lanes = in(reg) at.lanes(), value = in(reg) value, held = out(reg) held,
                )
            };
            attempt(t, held)
        }
    };
}

store_if!(
    /// [`Op::StoreMinSigned`](crate::spec::Op::StoreMinSigned): what the word held.
    store_min_signed, "jge"
);
store_if!(
    /// [`Op::StoreMinUnsigned`](crate::spec::Op::StoreMinUnsigned): what the word held.
    store_min_unsigned, "jae"
);
store_if!(
    /// [`Op::StoreMaxSigned`](crate::spec::Op::StoreMaxSigned): what the word held.
    store_max_signed, "jle"
);
store_if!(
    /// [`Op::StoreMaxUnsigned`](crate::spec::Op::StoreMaxUnsigned): what the word held.
    store_max_unsigned, "jbe"
);

/// [`Op::AddUnless`](crate::spec::Op::AddUnless): whether it added. The load of the guard is an acquire, as
/// every load here is, and no section commits on a guard that it did not load itself.
///
/// # Safety
/// Besides: `guard` is a readable, aligned word.
#[inline(always)]
pub(crate) unsafe fn add_unless(at: At, n: u64, guard: *const u64) -> Attempt<bool> {
    // SAFETY: as above.
    unsafe {
        section!(
            [
                "mov {seen}, qword ptr [{guard}]",
                inject!(5),
                "test {seen}, {seen}",
                "jnz {raised}",
                inject!(6),
                "add qword ptr [{word} + {t}], {n}",
            ],
            word = in(reg) at.word, area = in(reg) at.area(), lanes = in(reg) at.lanes(), n = in(reg) n, guard = in(reg) guard,
            seen = out(reg) _, raised = label { return Attempt::Done(false) },
        );
    }
    Attempt::Done(true)
}

/// [`Op::AddWithin`](crate::spec::Op::AddWithin): whether it stored.
///
/// # Safety
/// As [`inc`].
#[inline(always)]
pub(crate) unsafe fn add_within(at: At, n: u64, most: u64) -> Attempt<bool> {
    // SAFETY: the caller's promise.
    unsafe {
        section!(
            [
                "mov {sum}, qword ptr [{word} + {t}]",
                inject!(5),
                "add {sum}, {n}",
                "lea {distance}, [{sum} + {most}]",
                "sub {distance}, qword ptr [{word} + {t} + 8]",
                inject!(6),
                "cmp {distance}, {twice}",
                "ja {beyond}",
                inject!(7),
                "mov qword ptr [{word} + {t}], {sum}",
            ],
            word = in(reg) at.word, area = in(reg) at.area(), lanes = in(reg) at.lanes(), n = in(reg) n,
            most = in(reg) most, twice = in(reg) most << 1,
            sum = out(reg) _, distance = out(reg) _, beyond = label { return Attempt::Done(false) },
        );
    }
    Attempt::Done(true)
}

/// The two differ in the jump that skips the commit.
macro_rules! add_within_if {
    ($(#[$doc:meta])* $name:ident, $skip:literal) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As [`inc`]; `guard` is a readable, aligned word.
        #[inline(always)]
        pub(crate) unsafe fn $name(
            at: At,
            n: u64,
            most: u64,
            guard: *const u64,
            limit: u64,
        ) -> Attempt<bool> {
            // SAFETY: the caller's promise.
            unsafe {
                section!(
                    [
                        "cmp qword ptr [{guard}], {limit}",
                        concat!($skip, " {beyond}"),
                        "mov {sum}, qword ptr [{word} + {t}]",
                        inject!(5),
                        "add {sum}, {n}",
                        "lea {distance}, [{sum} + {most}]",
                        "sub {distance}, qword ptr [{word} + {t} + 8]",
                        inject!(6),
                        "cmp {distance}, {twice}",
                        "ja {beyond}",
                        inject!(7),
                        "mov qword ptr [{word} + {t}], {sum}",
                    ],
                    word = in(reg) at.word, area = in(reg) at.area(), lanes = in(reg) at.lanes(), n = in(reg) n,
                    guard = in(reg) guard, limit = in(reg) limit,
                    most = in(reg) most, twice = in(reg) most << 1,
            sum = out(reg) _, distance = out(reg) _, beyond = label { return Attempt::Done(false) },
                );
            }
            Attempt::Done(true)
        }
    };
}

add_within_if!(
    /// [`Op::AddWithinAtMost`](crate::spec::Op::AddWithinAtMost): whether it stored.
    add_within_at_most, "jg"
);
add_within_if!(
    /// [`Op::AddWithinAtLeast`](crate::spec::Op::AddWithinAtLeast): whether it stored.
    add_within_at_least, "jl"
);

/// [`Op::AddPair`](crate::spec::Op::AddPair).
///
/// # Safety
/// As [`inc`].
#[inline(always)]
pub(crate) unsafe fn add_pair(at: At, first: u64, second: u64) -> Attempt<()> {
    // SAFETY: the caller's promise.
    unsafe {
        section!(
            [
                "movdqa {sum}, xmmword ptr [{word} + {t}]",
                inject!(5),
                "paddq {sum}, {n}",
                inject!(6),
                "movdqa xmmword ptr [{word} + {t}], {sum}",
            ],
            word = in(reg) at.word, area = in(reg) at.area(), lanes = in(reg) at.lanes(),
            n = in(xmm_reg) pair(first, second),
            sum = out(xmm_reg) _,
        );
    }
    Attempt::Done(())
}

/// [`Op::CompareExchangePair`](crate::spec::Op::CompareExchangePair): what the words held.
///
/// # Safety
/// As [`inc`].
#[inline(always)]
pub(crate) unsafe fn compare_exchange_pair(
    at: At,
    old_first: u64,
    old_second: u64,
    new_first: u64,
    new_second: u64,
) -> Attempt<[u64; 2]> {
    let (held0, held1): (u64, u64);
    // SAFETY: the caller's promise.
    let t = unsafe {
        section_with_result!(
            [
                "mov {held0}, qword ptr [{word} + {t}]",
                inject!(5),
                "mov {held1}, qword ptr [{word} + {t} + 8]",
                inject!(6),
                "cmp {held0}, {old0}",
                "jne 3f",
                "cmp {held1}, {old1}",
                "jne 3f",
                inject!(7),
                "movdqa xmmword ptr [{word} + {t}], {new}",
            ],
            word = in(reg) at.word, area = in(reg) at.area(), lanes = in(reg) at.lanes(),
            old0 = in(reg) old_first,
            old1 = in(reg) old_second,
            new = in(xmm_reg) pair(new_first, new_second),
            held0 = out(reg) held0,
            held1 = out(reg) held1,
        )
    };
    attempt(t, [held0, held1])
}

/// Two words in one register, as they lie in memory. They come and go as two numbers, so that they
/// are put together in registers, not in memory.
#[inline(always)]
fn pair(first: u64, second: u64) -> __m128i {
    // SAFETY: SSE2 is part of x86-64.
    #[allow(unused_unsafe, reason = "safe where the target feature is known")]
    unsafe {
        _mm_set_epi64x(second as i64, first as i64)
    }
}
