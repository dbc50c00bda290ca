//! Azurite: Azure Blob Storage as a Node server. It checks signatures.

use hyperslab_store::{Environment, Options};

use super::{Child, Place, Unavailable, tool};
use crate::{Failure, Outcome};

const CONTAINER: &str = "suite";
/// The account of every emulator; name and key are in Azure's public documentation.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// A shared access signature of that account and key which allows to make containers, until 2099.
const MAY_MAKE_CONTAINERS: &str = "sv=2019-12-12&ss=b&srt=c&sp=c&se=2099-01-01T00%3A00%3A00Z&sig=gtLKHeoHHaSXKYUU7mB05BvFhjAn49dYycgdR%2BgWtiU%3D";

impl Place {
    /// A container of an Azurite server.
    pub fn azurite() -> Result<Place, Unavailable> {
        let program = tool(".tools/azurite/node_modules/.bin/azurite-blob")?;
        start(&program).map_err(Unavailable::Broken)
    }
}

fn start(program: &std::path::Path) -> Outcome<Place> {
    let child = Child::start(program, |port, folder| {
        let data = folder.join("data").to_string_lossy().into_owned();
        let port = port.to_string();
        [
            "--blobHost",
            "127.0.0.1",
            "--blobPort",
            &port,
            "-l",
            &data,
            "--silent",
        ]
        .into_iter()
        .chain(["--skipApiVersionCheck", "--disableTelemetry"])
        .map(str::to_owned)
        .collect()
    })?;
    let target = format!("/{ACCOUNT}/{CONTAINER}?restype=container&{MAY_MAKE_CONTAINERS}");
    let status = child.request("PUT", &target)?;
    if status != 201 {
        let log = child.log();
        return Err(Failure::new(format!(
            "the container was not made (status {status}):\n{log}"
        )));
    }
    let options = Options::new()
        .with_environment(Environment::default())
        .with("endpoint", format!("{}/{ACCOUNT}", child.endpoint()))
        .with("account", ACCOUNT)
        .with("account_key", KEY);
    Ok(Place::new(
        "Azurite (Azure)",
        format!("az://{CONTAINER}"),
        options,
        child,
    ))
}
