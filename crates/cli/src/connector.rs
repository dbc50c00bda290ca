//! Where the HDF5 connector is, which libhdf5s there are, and which of them load it.
//!
//! Libraries are tried in processes of their own: one that is damaged must not take this one with it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::doctor::Step;

/// The file name of the connector.
const PLUGIN: &str = "libhyperslab_vol.so";
/// Prints the folders that Python looks for packages in.
const FOLDERS: &str = "import sys; print('\\n'.join(sys.path))";
/// What to do about a library that does not work.
const REINSTALL: &str = "reinstall the package that brings it";
/// Where Linux keeps libraries.
const SYSTEM: [&str; 6] = [
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/hdf5/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
];

/// The connector: where `HYPERSLAB_VOL` says, beside this program, or in a folder `lib` next to it.
pub(crate) fn plugin() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("HYPERSLAB_VOL").filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        return named.is_file().then_some(named);
    }
    let program = std::env::current_exe().ok()?.canonicalize().ok()?;
    let folder = program.parent()?;
    let places = [
        folder.join(PLUGIN),
        folder.join("../lib/hyperslab").join(PLUGIN),
        folder.join("../lib").join(PLUGIN),
    ];
    let found = places.into_iter().find(|place| place.is_file());
    found.and_then(|place| place.canonicalize().ok())
}

/// Looks at the connector and at every libhdf5 that can be found.
pub(crate) fn check() -> Vec<Step> {
    const NAME: &str = "connector";
    let Some(plugin) = plugin() else {
        return vec![Step::failed(
            NAME,
            format!("{PLUGIN} is not beside this program"),
            "build it with `cargo build -p hyperslab-vol --release`, or set HYPERSLAB_VOL to its path",
        )];
    };
    let mut steps = vec![Step::passed(NAME, plugin.display().to_string())];
    steps.push(settings(&plugin));
    let libraries = libraries();
    if libraries.is_empty() {
        steps.push(Step::skipped(
            "libhdf5",
            "none was found; h5py, netCDF4 and PyTables bring one",
        ));
    }
    for library in libraries {
        steps.push(probe(&library, &plugin));
    }
    steps
}

/// Whether the environment leads HDF5 programs to the connector.
fn settings(plugin: &Path) -> Step {
    const NAME: &str = "environment";
    const HINT: &str = "run: eval \"$(hyperslab vol env)\"";
    let connector = std::env::var("HDF5_VOL_CONNECTOR").unwrap_or_default();
    let (name, settings) = connector.split_once(' ').unwrap_or((&connector, ""));
    if name.is_empty() {
        return Step::failed(
            NAME,
            "HDF5_VOL_CONNECTOR is not set, so programs do without",
            HINT,
        );
    }
    if name != "hyperslab" {
        return Step::failed(NAME, "HDF5_VOL_CONNECTOR names another connector", HINT);
    }
    if let Err(error) = hyperslab_vol::check_settings(settings) {
        return Step::error(NAME, &error);
    }
    let folders = std::env::var_os("HDF5_PLUGIN_PATH").unwrap_or_default();
    let leads = |folder: PathBuf| {
        let there = folder.join(PLUGIN).canonicalize();
        there.is_ok_and(|there| there == plugin)
    };
    match std::env::split_paths(&folders).any(leads) {
        true => Step::passed(NAME, "programs that use HDF5 load the connector"),
        false => Step::failed(
            NAME,
            format!("HDF5_PLUGIN_PATH does not name a folder with {PLUGIN}"),
            HINT,
        ),
    }
}

/// Every libhdf5 that Python packages bring or the system has, once each.
fn libraries() -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for python in ["python3", "python"] {
        let Ok(told) = Command::new(python).args(["-c", FOLDERS]).output() else {
            continue;
        };
        for folder in String::from_utf8_lossy(&told.stdout).lines() {
            for packed in entries(Path::new(folder)) {
                if packed.extension().is_some_and(|ending| ending == "libs") {
                    found.extend(libraries_in(&packed));
                }
            }
        }
    }
    let variable = |name: &str, below: &str| {
        let value = std::env::var_os(name).unwrap_or_default();
        let each: Vec<PathBuf> = std::env::split_paths(&value)
            .map(|p| p.join(below))
            .collect();
        each
    };
    let mut folders: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    folders.extend(variable("LD_LIBRARY_PATH", ""));
    folders.extend(variable("HDF5_DIR", "lib"));
    folders.extend(variable("CONDA_PREFIX", "lib"));
    for folder in folders.iter().filter(|folder| folder.is_absolute()) {
        found.extend(libraries_in(folder));
        found.extend(libraries_in(&folder.join("hdf5/serial")));
    }
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder).into_iter().flatten().flatten();
    read.map(|entry| entry.path()).collect()
}

fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    let named = entries(folder).into_iter().filter(|path| {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| is_libhdf5(&name))
    });
    named.filter_map(|path| path.canonicalize().ok()).collect()
}

/// True of `libhdf5.so.310`, `libhdf5-1a2b3c.so.200.2.0` and `libhdf5_serial.so.103`, not of the
/// libraries beside them.
fn is_libhdf5(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("libhdf5") else {
        return false;
    };
    let Some((tag, _)) = rest.split_once(".so") else {
        return false;
    };
    tag.is_empty() || tag.starts_with('-') || tag == "_serial" || tag == "_openmpi"
}

/// Has a library load the connector.
fn probe(library: &Path, plugin: &Path) -> Step {
    const NAME: &str = "libhdf5";
    let shown = library.display();
    let program = std::env::current_exe().unwrap_or_else(|_| "hyperslab".into());
    let told = Command::new(program)
        .args(["--json", "vol", "probe"])
        .arg(library)
        .env("HDF5_PLUGIN_PATH", plugin.parent().unwrap_or(plugin))
        .env_remove("HDF5_VOL_CONNECTOR")
        .output();
    let told = match told {
        Ok(told) => told,
        Err(e) => return Step::failed(NAME, format!("{shown} cannot be tried: {e}"), REINSTALL),
    };
    let answer: Option<Value> = serde_json::from_slice(&told.stdout).ok();
    let Some(version) = answer
        .as_ref()
        .and_then(|answer| answer["version"].as_str())
    else {
        let said = String::from_utf8_lossy(&told.stderr).trim().to_owned();
        return Step::failed(NAME, format!("{shown} cannot be loaded: {said}"), REINSTALL);
    };
    if answer
        .as_ref()
        .is_some_and(|answer| answer["loads"] == true)
    {
        return Step::passed(NAME, format!("{version} loads the connector ({shown})"));
    }
    match old(version) {
        true => Step::skipped(
            NAME,
            format!("{version} is too old for the connector, which needs 1.14.2 ({shown})"),
        ),
        false => Step::failed(
            NAME,
            format!("{version} does not load the connector ({shown})"),
            "is the connector built for this machine? see RUST_LOG=debug hyperslab doctor",
        ),
    }
}

fn old(version: &str) -> bool {
    let numbers: Vec<u32> = version.split('.').filter_map(|n| n.parse().ok()).collect();
    numbers < vec![1, 14, 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_library_itself_is_meant() {
        for name in [
            "libhdf5.so",
            "libhdf5.so.310",
            "libhdf5-1a2b.so.200.2.0",
            "libhdf5_serial.so.103",
        ] {
            assert!(is_libhdf5(name), "{name}");
        }
        for name in [
            "libhdf5_hl.so",
            "libhdf5_hl-1a.so.200",
            "libhdf5.a",
            "libhdf.so",
            "libhdf5_cpp.so",
        ] {
            assert!(!is_libhdf5(name), "{name}");
        }
        assert!(old("1.12.2") && old("1.14.1") && !old("1.14.2") && !old("2.0.0"));
    }
}
