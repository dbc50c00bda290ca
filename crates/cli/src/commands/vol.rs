//! `vol`: the HDF5 connector, for programs that know nothing of Hyperslab.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hyperslab::{Error, Result};
use serde_json::json;

use crate::connector;
use crate::context::Context;

const EXAMPLES: &str = "Examples:
  eval \"$(hyperslab vol env)\"
  eval \"$(hyperslab vol env root=s3://bucket/run7 cache=1GiB)\"
  python3 -c 'import h5py; print(list(h5py.File(\"s3://bucket/demo.h5\")))'
  hyperslab doctor";

/// Use the HDF5 connector: unmodified HDF5 programs on any store
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Print what to set in a shell so that HDF5 programs load the connector
    Env {
        /// Settings of the connector, such as root=s3://bucket, map=/data=s3://bucket/data,
        /// planner=global, phi=0, profile=FILE, cache=1GiB, trace=DIR, accelerate=1
        settings: Vec<String>,
    },
    /// Load a libhdf5, and have it load the connector
    #[command(hide = true)]
    Probe {
        /// The library
        library: PathBuf,
    },
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    match &arguments.action {
        Action::Env { settings } => env(settings, context)?,
        Action::Probe { library } => {
            let probed = hyperslab_vol::probe(library)?;
            let (major, minor, patch) = probed.version;
            let version = format!("{major}.{minor}.{patch}");
            let text = match probed.loads {
                true => format!("HDF5 {version} loads the connector"),
                false => format!("HDF5 {version} does not load the connector"),
            };
            context.result(&text, || json!({"version": version, "loads": probed.loads}))?;
        }
    }
    Ok(true)
}

fn env(settings: &[String], context: &Context) -> Result<()> {
    let settings = settings.join(";");
    hyperslab_vol::check_settings(&settings)?;
    let plugin = connector::plugin().ok_or_else(|| {
        Error::not_found("libhyperslab_vol.so is not beside this program")
            .with_hint("build it with `cargo build -p hyperslab-vol --release`, or set HYPERSLAB_VOL to its path")
    })?;
    let folder = plugin.parent().map(PathBuf::from).unwrap_or_default();
    let folder = folder.display().to_string();
    let value = format!("hyperslab {settings}");
    let value = value.trim_end();
    let text = format!(
        "export HDF5_PLUGIN_PATH={}\nexport HDF5_VOL_CONNECTOR={}",
        quoted(&folder),
        quoted(value)
    );
    context.result(
        &text,
        || json!({"HDF5_PLUGIN_PATH": folder, "HDF5_VOL_CONNECTOR": value}),
    )
}

/// A word for a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=,+".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("/a/b.c"), "/a/b.c");
        assert_eq!(
            quoted("hyperslab phi=0;cache=1"),
            "'hyperslab phi=0;cache=1'"
        );
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
