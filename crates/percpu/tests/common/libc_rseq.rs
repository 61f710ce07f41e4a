//! What the C library has done about restartable sequences, found out without the library's help.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_void};

/// glibc's size of the area, 0 if it registers nobody; `None` where it has none.
pub(crate) fn size() -> Option<u32> {
    let size = symbol(c"__rseq_size").cast::<u32>();
    // SAFETY: glibc defines it as an unsigned int, constant once it has started.
    (!size.is_null()).then(|| unsafe { size.read() })
}

/// Whether the C library registers this process's threads.
pub(crate) fn registers() -> bool {
    size().is_some_and(|size| size != 0)
}

/// glibc's offset of the area from the thread pointer.
pub(crate) fn offset() -> isize {
    let offset = symbol(c"__rseq_offset").cast::<isize>();
    assert!(!offset.is_null(), "only where glibc has an area");
    // SAFETY: glibc defines it as a ptrdiff_t, constant once it has started.
    unsafe { offset.read() }
}

fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: a name that ends.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// Takes back glibc's registration of this thread, as if it had been refused.
#[cfg(target_arch = "x86_64")]
pub(crate) fn unregister_this_thread() {
    const AREA_SIZE: u32 = 32;
    const UNREGISTER: i32 = 1;
    const SIGNATURE: u32 = 0x5305_3053;
    // SAFETY: the thread pointer, at which its own address lies (psABI). The kernel compares area,
    // size and signature with those that glibc gave, and then forgets them.
    let result = unsafe {
        let base: *mut u8;
        core::arch::asm!("mov {}, fs:[0]", out(reg) base, options(nostack, preserves_flags, readonly));
        let area = base.offset(offset());
        libc::syscall(libc::SYS_rseq, area, AREA_SIZE, UNREGISTER, SIGNATURE)
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// No test does so elsewhere.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn unregister_this_thread() {
    unimplemented!("where the thread pointer is on this architecture");
}
