//! Turns the operating system's errors into ours.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::{Error, ErrorKind};

/// True if the error means that there is no such file (also: that a parent is a file).
pub(super) fn is_absent(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// True if symbolic links lead in a circle.
pub(super) fn is_loop(e: &io::Error) -> bool {
    Errno::from_io_error(e) == Some(Errno::LOOP)
}

/// The error for a failed operation (`what` is a verb) on `path`.
pub(super) fn io_error(what: &str, path: &Path, e: io::Error) -> Error {
    use io::ErrorKind as Io;
    let path = path.display();
    let (kind, why, hint) = match e.kind() {
        Io::StorageFull => (
            ErrorKind::Unavailable,
            "the disk is full",
            "free some space",
        ),
        Io::QuotaExceeded => (
            ErrorKind::Unavailable,
            "the disk quota is used up",
            "free some space",
        ),
        Io::PermissionDenied => (
            ErrorKind::Denied,
            "permission denied",
            "check the owner and mode of the directories",
        ),
        Io::ReadOnlyFilesystem => (
            ErrorKind::Denied,
            "the file system is read only",
            "write somewhere else",
        ),
        Io::InvalidFilename => (
            ErrorKind::Invalid,
            "a name is too long for the file system",
            "use shorter names",
        ),
        Io::IsADirectory | Io::DirectoryNotEmpty => (
            ErrorKind::Invalid,
            "there is a directory of that name",
            "on local disk one key cannot be the start of another",
        ),
        Io::NotADirectory | Io::AlreadyExists => (
            ErrorKind::Invalid,
            "a parent directory is a file",
            "on local disk one key cannot be the start of another",
        ),
        _ if is_loop(&e) => (
            ErrorKind::Invalid,
            "its links form a loop",
            "repair the links",
        ),
        _ => {
            let message = format!("cannot {what} {path}: {e}");
            return Error::unavailable(message).with_source(e);
        }
    };
    Error::new(kind, format!("cannot {what} {path}: {why}"))
        .with_hint(hint)
        .with_source(e)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_errors_have_their_kinds() {
        for (errno, kind, word) in [
            (Errno::NOSPC, ErrorKind::Unavailable, "disk is full"),
            (Errno::DQUOT, ErrorKind::Unavailable, "quota"),
            (Errno::ACCESS, ErrorKind::Denied, "permission"),
            (Errno::PERM, ErrorKind::Denied, "permission"),
            (Errno::ROFS, ErrorKind::Denied, "read only"),
            (Errno::NAMETOOLONG, ErrorKind::Invalid, "too long"),
            (Errno::ISDIR, ErrorKind::Invalid, "directory of that name"),
            (Errno::NOTDIR, ErrorKind::Invalid, "is a file"),
            (Errno::LOOP, ErrorKind::Invalid, "loop"),
            (Errno::IO, ErrorKind::Unavailable, "d/k"),
        ] {
            let e = io_error("write", Path::new("d/k"), errno.into());
            assert_eq!(e.kind(), kind, "{e}");
            assert!(e.message().contains(word), "{e}");
        }
    }
}
