//! Numbers and tables as people read them, for all that print results.

pub mod size;
pub mod table;

/// Text as a part of a page.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
