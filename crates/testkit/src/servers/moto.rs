//! moto: Amazon's S3 as a Python server. Right semantics, any credentials.

use hyperslab_store::{Environment, Options};

use super::{Child, Place, Unavailable, tool};
use crate::{Failure, Outcome};

const BUCKET: &str = "suite";
/// Starts the server so that conditional writes are atomic.
const SCRIPT: &str = include_str!("moto.py");

impl Place {
    /// A bucket of a moto server.
    pub fn moto() -> Result<Place, Unavailable> {
        tool(".venv/bin/moto_server")?;
        let program = tool(".venv/bin/python")?;
        start(&program).map_err(Unavailable::Broken)
    }
}

fn start(program: &std::path::Path) -> Outcome<Place> {
    let child = Child::start(program, |port, _| {
        vec!["-c".into(), SCRIPT.into(), port.to_string()]
    })?;
    let status = child.request("PUT", &format!("/{BUCKET}"))?;
    if status != 200 {
        let log = child.log();
        return Err(Failure::new(format!(
            "the bucket was not made (status {status}):\n{log}"
        )));
    }
    let options = Options::new()
        .with_environment(Environment::default())
        .with("endpoint", child.endpoint())
        .with("access_key_id", "moto")
        .with("secret_access_key", "moto");
    Ok(Place::new(
        "moto (S3)",
        format!("s3://{BUCKET}"),
        options,
        child,
    ))
}
