//! Keeps the object that holds the sections in memory.
//!
//! The kernel forgets a thread's section only at its next preemption, so a thread that counted once
//! may be killed much later if the code is gone: it reads the descriptor, and the address is not
//! mapped. A library that contains sections must therefore never be unloaded by `dlclose`.
//!
//! This runs when the object is loaded, not at the first use, because the first use may be in a
//! signal handler, where `dlopen` could wait for a lock that the interrupted code holds.
#![allow(unsafe_code)]

use core::arch::asm;
use core::ffi::{c_char, c_int, c_void};

#[used]
#[unsafe(link_section = ".init_array.65535")]
static AT_LOAD: extern "C" fn() = keep;

type DlAddr = unsafe extern "C" fn(*const c_void, *mut libc::Dl_info) -> c_int;
type DlOpen = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

extern "C" fn keep() {
    // A program that was linked statically has no loader, and nothing to unload.
    let (Some(dladdr), Some(dlopen)) = loader() else {
        return;
    };
    // SAFETY: dladdr fills the structure where it returns non-zero; the name then lives as long as
    // the object. NOLOAD only finds an object that is there.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        let found = dladdr((&raw const AT_LOAD).cast(), &mut info) != 0;
        if found && !info.dli_fname.is_null() && !is_program(info.dli_fbase) {
            dlopen(
                info.dli_fname,
                libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE,
            );
        }
    }
}

/// Whether the object that starts here is the program itself, which is never unloaded. Its headers
/// are at its start.
fn is_program(start: *mut c_void) -> bool {
    // SAFETY: no preconditions.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
    headers.wrapping_sub(start.addr()) < 4096
}

/// The loader's functions, weak, so that static programs link without them.
fn loader() -> (Option<DlAddr>, Option<DlOpen>) {
    let (dladdr, dlopen): (*const c_void, *const c_void);
    // SAFETY: loads two addresses, null where a symbol is not defined; a null pointer is the None
    // of a function pointer.
    unsafe {
        asm!(
            ".weak dladdr",
            ".weak dlopen",
            "mov {dladdr}, qword ptr [rip + dladdr@GOTPCREL]",
            "mov {dlopen}, qword ptr [rip + dlopen@GOTPCREL]",
            dladdr = out(reg) dladdr,
            dlopen = out(reg) dlopen,
            options(nostack, preserves_flags, readonly),
        );
        (
            core::mem::transmute::<*const c_void, Option<DlAddr>>(dladdr),
            core::mem::transmute::<*const c_void, Option<DlOpen>>(dlopen),
        )
    }
}
