//! The server: one binary for AWS Lambda, Azure Functions, Cloud Run and loopback.
//!
//! On top of [`crate::Service`], which does the work; here requests come in and answers go out.
//! The environment says where we run ([`Mode`]), and each mode is one file.

mod azure;
mod http;
mod lambda;
mod mode;
mod stream;

use std::sync::Arc;

use hyperslab_index::{Error, Result};
use hyperslab_store::{Environment, Options};
use tokio::net::TcpListener;

pub use mode::{Arguments, Mode};

use crate::{AllowList, Secret, Service, ServiceConfig};

/// Runs until it is told to stop.
pub async fn run(arguments: &Arguments, environment: &Environment) -> Result<()> {
    let mode = Mode::choose(arguments, environment)?;
    let service = match configure(&mode, arguments, environment).and_then(Service::new) {
        Ok(service) => Arc::new(service),
        Err(error) => {
            if let Mode::Lambda { api } = &mode {
                lambda::report_start(api, &error).await;
            }
            return Err(error);
        }
    };
    match mode {
        Mode::Lambda { api } => lambda::run(&api, &service).await,
        Mode::Azure { address } | Mode::CloudRun { address } => {
            let listener = listen(address).await?;
            http::run(listener, service, stopped()).await
        }
        Mode::Local { address } => {
            let listener = listen(address).await?;
            let address = listener.local_addr().map_err(unreachable_address)?;
            // For the program that started us, which waits for this line.
            println!(
                "{}",
                serde_json::json!({ "listening": format!("http://{address}") })
            );
            http::run(listener, service, stopped()).await
        }
    }
}

fn configure(
    mode: &Mode,
    arguments: &Arguments,
    environment: &Environment,
) -> Result<ServiceConfig> {
    let allow = AllowList::parse(environment.get("HYPERSLAB_FUNCTION_ALLOW").unwrap_or(""))?;
    if allow.is_empty() {
        return Err(
            Error::invalid("the function has nothing that it may read").with_hint(
                "set HYPERSLAB_FUNCTION_ALLOW to URL prefixes, such as s3://bucket/prefix",
            ),
        );
    }
    let secret = secret(environment)?;
    if secret.is_none() && !(arguments.no_signature && mode.is_loopback()) {
        return Err(match arguments.no_signature {
            true => Error::invalid("--no-signature is for a server that listens on loopback"),
            false => Error::invalid("the function has no secret"),
        }
        .with_hint("set HYPERSLAB_FUNCTION_SECRET or HYPERSLAB_FUNCTION_SECRET_FILE"));
    }
    Ok(ServiceConfig {
        allow,
        secret: secret.filter(|_| !arguments.no_signature),
        limits: crate::Limits::from_environment(mode.host(), environment)?,
        options: Options::new().with_environment(environment.clone()),
    })
}

fn secret(environment: &Environment) -> Result<Option<Secret>> {
    if let Some(text) = environment.get("HYPERSLAB_FUNCTION_SECRET") {
        return Secret::new(text).map(Some);
    }
    let Some(path) = environment.get("HYPERSLAB_FUNCTION_SECRET_FILE") else {
        return Ok(None);
    };
    let text = std::fs::read_to_string(path).map_err(|e| {
        Error::invalid(format!(
            "the function's secret cannot be read from {path}: {e}"
        ))
    })?;
    Secret::new(text.trim()).map(Some)
}

async fn listen(address: std::net::SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|e| {
        Error::unavailable(format!("the function cannot listen on {address}: {e}"))
            .with_hint("choose another port, or 0 for a free one")
    })
}

fn unreachable_address(e: std::io::Error) -> Error {
    Error::internal("the listener has no address").with_source(e)
}

/// Ready when the process is asked to end, as Cloud Run does ten seconds before it insists.
async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        Err(_) => std::future::pending().await,
    }
}
