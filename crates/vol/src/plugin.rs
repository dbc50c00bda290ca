//! What libhdf5 asks a plug-in: its kind, and its class.

use std::ffi::{c_int, c_void};

use crate::class::CLASSES;
use crate::library;

/// A connector (`H5PL_TYPE_VOL`).
const CONNECTOR: c_int = 1;

/// Tells libhdf5 what kind of plug-in this is.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn H5PLget_plugin_type() -> c_int {
    CONNECTOR
}

/// Tells libhdf5 the class of the connector. Every library in a process has one of its own, so the
/// address that this returns to says which one it is that asks.
///
/// # Safety
/// To be called by libhdf5 only.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn H5PLget_plugin_info() -> *const c_void {
    std::arch::naked_asm!("mov rdi, [rsp]", "jmp {told}", told = sym class_of)
}

/// Tells libhdf5 the class of the connector. Every library in a process has one of its own, so the
/// address that this returns to says which one it is that asks.
///
/// # Safety
/// To be called by libhdf5 only.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn H5PLget_plugin_info() -> *const c_void {
    std::arch::naked_asm!("mov x0, x30", "b {told}", told = sym class_of)
}

/// The class for the library that has its code at `caller`; null if it cannot be served.
extern "C" fn class_of(caller: *const c_void) -> *const c_void {
    let slot = std::panic::catch_unwind(|| library::slot_of(caller));
    match slot.ok().flatten().and_then(|slot| CLASSES.get(slot)) {
        Some(class) => std::ptr::from_ref(class).cast(),
        None => std::ptr::null(),
    }
}
