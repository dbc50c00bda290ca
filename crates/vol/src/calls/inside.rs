//! What is inside values and names: blobs, which are values of variable length, and tokens, which are
//! what references hold.

use std::ffi::{c_char, c_int, c_void};

use crate::abi::{BlobClass, FAIL, Herr, Opaque, Optional, Ptr, Token, TokenClass};
use crate::guard::guarded;
use crate::object::under;

pub(crate) const fn blobs<const S: usize>() -> BlobClass {
    BlobClass {
        put: put::<S>,
        get: get::<S>,
        specific: specific::<S>,
        optional: Some(optional::<S>),
    }
}

pub(crate) const fn tokens<const S: usize>() -> TokenClass {
    TokenClass {
        cmp: cmp::<S>,
        to_str: to_str::<S>,
        from_str: from_str::<S>,
    }
}

unsafe extern "C" fn put<const S: usize>(
    file: Ptr,
    bytes: *const c_void,
    size: usize,
    blob: Ptr,
    context: Ptr,
) -> Herr {
    // SAFETY: the arguments are the caller's, with the native object in place of ours.
    guarded::<S, _>(|native| unsafe { (native.blob.put)(under(file), bytes, size, blob, context) })
}

unsafe extern "C" fn get<const S: usize>(
    file: Ptr,
    blob: *const c_void,
    bytes: Ptr,
    size: usize,
    context: Ptr,
) -> Herr {
    // SAFETY: as in `put`.
    guarded::<S, _>(|native| unsafe { (native.blob.get)(under(file), blob, bytes, size, context) })
}

unsafe extern "C" fn specific<const S: usize>(file: Ptr, blob: Ptr, args: *mut Opaque) -> Herr {
    // SAFETY: as in `put`.
    guarded::<S, _>(|native| unsafe { (native.blob.specific)(under(file), blob, args) })
}

unsafe extern "C" fn optional<const S: usize>(file: Ptr, blob: Ptr, args: *mut Optional) -> Herr {
    guarded::<S, _>(|native| match native.blob.optional {
        // SAFETY: as in `put`.
        Some(call) => unsafe { call(under(file), blob, args) },
        None => FAIL,
    })
}

unsafe extern "C" fn cmp<const S: usize>(
    object: Ptr,
    one: *const Token,
    other: *const Token,
    order: *mut c_int,
) -> Herr {
    // SAFETY: as in `put`.
    guarded::<S, _>(|native| unsafe { (native.token.cmp)(under(object), one, other, order) })
}

unsafe extern "C" fn to_str<const S: usize>(
    object: Ptr,
    kind: c_int,
    token: *const Token,
    text: *mut *mut c_char,
) -> Herr {
    // SAFETY: as in `put`.
    guarded::<S, _>(|native| unsafe { (native.token.to_str)(under(object), kind, token, text) })
}

unsafe extern "C" fn from_str<const S: usize>(
    object: Ptr,
    kind: c_int,
    text: *const c_char,
    token: *mut Token,
) -> Herr {
    // SAFETY: as in `put`.
    guarded::<S, _>(|native| unsafe { (native.token.from_str)(under(object), kind, text, token) })
}
