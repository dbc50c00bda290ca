//! Results as files: one module per format, all fed block by block.
//!
//! Between the blocks of a [`Target`] and a local file or standard output.
//!
//! Invariant: a file appears complete or not at all; memory stays within the limit, whatever the
//! size of the result.

mod atomic;
mod csv;
mod json;
mod npy;
mod picture;

use std::io::{BufWriter, Write};
use std::path::Path;

use clap::ValueEnum;
use futures::StreamExt;
use hyperslab::{DataType, Error, Progress, Result};

use crate::context::Context;
use crate::target::{Cells, Target};
use atomic::AtomicFile;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// NumPy's file format
    Npy,
    /// Bare little-endian cells in row-major order
    Raw,
    /// Comma-separated values
    Csv,
    /// JSON
    Json,
    /// A heat map of a two-dimensional result
    Png,
    /// Text as NumPy prints it
    Text,
}

impl Format {
    /// The format that a file name's ending stands for.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let ending = path
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or("")
            .to_ascii_lowercase();
        Ok(match ending.as_str() {
            "npy" => Format::Npy,
            "raw" | "bin" => Format::Raw,
            "csv" => Format::Csv,
            "json" => Format::Json,
            "png" => Format::Png,
            "txt" => Format::Text,
            _ => {
                return Err(Error::invalid(format!(
                    "the name {} does not tell a format",
                    path.display()
                ))
                .with_hint(
                    "end it in .npy, .raw, .bin, .csv, .json, .png or .txt, or give --format",
                ));
            }
        })
    }
}

/// What a sink must know before the first cell.
pub(crate) struct Head {
    pub(crate) dtype: DataType,
    /// The shape as NumPy has it.
    pub(crate) shape: Vec<u64>,
    /// Names of the dimensions of `shape`, where they have one.
    pub(crate) names: Vec<Option<String>>,
    /// The longest string in characters (bytes for byte strings), where the format needs it.
    pub(crate) longest: Option<usize>,
    /// Limits of the colours of a picture.
    pub(crate) limits: (Option<f64>, Option<f64>),
}

impl Head {
    fn width(&self) -> usize {
        self.dtype.cell_bytes().unwrap_or(0) as usize
    }
}

/// Takes the cells of a result in row-major order.
trait Sink {
    fn cells(&mut self, cells: &Cells, out: &mut dyn Write) -> Result<()>;
    fn finish(&mut self, out: &mut dyn Write) -> Result<()>;
}

/// Writes a result in a format, to a file or to standard output.
pub(crate) async fn export(
    target: &Target,
    mut head: Head,
    format: Format,
    path: Option<&Path>,
    context: &Context,
) -> Result<()> {
    check(&head, format)?;
    if format == Format::Text {
        return export_text(target, path, context).await;
    }
    if format == Format::Npy && head.dtype.is_variable() {
        head.longest = Some(longest_string(target, context).await?);
    }
    match path {
        Some(path) => {
            let mut file = AtomicFile::create(path)?;
            context.set_state(format!("interrupted; {} was not written", path.display()));
            stream(target, &head, format, &mut file, context).await?;
            file.commit()
        }
        None => {
            let mut out = BufWriter::new(std::io::stdout());
            stream(target, &head, format, &mut Pipe(&mut out), context).await
        }
    }
}

/// Text as it is shown on a terminal, which for a large result is its edges.
async fn export_text(target: &Target, path: Option<&Path>, context: &Context) -> Result<()> {
    let text = crate::text::render(target).await?;
    let Some(path) = path else {
        return context.line(&text);
    };
    let mut file = AtomicFile::create(path)?;
    writeln!(file, "{text}").map_err(|e| failed(&e))?;
    file.commit()
}

/// Refuses what a format cannot hold before anything is read.
fn check(head: &Head, format: Format) -> Result<()> {
    match format {
        Format::Raw if head.dtype.is_variable() => {
            Err(Error::invalid("strings have no raw form").with_hint("write .npy, .csv or .json"))
        }
        Format::Png => picture::check(head),
        _ => Ok(()),
    }
}

async fn stream(
    target: &Target,
    head: &Head,
    format: Format,
    out: &mut dyn Write,
    context: &Context,
) -> Result<()> {
    let mut sink: Box<dyn Sink> = match format {
        Format::Npy => Box::new(npy::NpySink::begin(head, out)?),
        Format::Raw => Box::new(npy::RawSink),
        Format::Text => return Err(Error::internal("text is not streamed")),
        Format::Csv => Box::new(csv::CsvSink::begin(head, out)?),
        Format::Json => Box::new(json::JsonSink::begin(head, out)?),
        Format::Png => Box::new(picture::PictureSink::begin(head)?),
    };
    each_block(target, context, "reading", |cells| sink.cells(&cells, out)).await?;
    sink.finish(out)?;
    out.flush().map_err(|e| failed(&e))
}

/// Reads the blocks of a target in order, one ahead of the one that is being handled.
async fn each_block(
    target: &Target,
    context: &Context,
    what: &str,
    mut handle: impl FnMut(Cells) -> Result<()>,
) -> Result<()> {
    let bar = context.bar(what);
    bar.start(target.bytes());
    // Three blocks exist at a time: one being written and two being read.
    let blocks = target.blocks((context.memory() / 3).max(1));
    let mut reads = futures::stream::iter(blocks)
        .map(|block| async move {
            target
                .read(&block)
                .await
                .map(|cells| (block.cells(), cells))
        })
        .buffered(2);
    while let Some(read) = reads.next().await {
        let (many, cells) = read?;
        handle(cells)?;
        bar.add(many.saturating_mul(target.cell_bytes()));
    }
    Ok(())
}

/// The length of the longest string, found by reading all of them.
async fn longest_string(target: &Target, context: &Context) -> Result<usize> {
    let text = target.dtype == DataType::String;
    let mut longest = 0;
    each_block(target, context, "measuring", |cells| {
        if let Cells::Strings(strings) = cells {
            for string in strings {
                let len = match text {
                    true => String::from_utf8_lossy(&string).chars().count(),
                    false => string.len(),
                };
                longest = longest.max(len);
            }
        }
        Ok(())
    })
    .await?;
    Ok(longest)
}

/// Standard output, whose closing by the reader is no error.
struct Pipe<'a>(&'a mut dyn Write);

impl Write for Pipe<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.0.write(bytes) {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
            other => other,
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self.0.flush() {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
            other => other,
        }
    }
}

/// The error for output that cannot be written.
fn failed(error: &std::io::Error) -> Error {
    Error::unavailable(format!("the result cannot be written: {error}"))
        .with_hint("check the free space and the permissions of the folder")
}
