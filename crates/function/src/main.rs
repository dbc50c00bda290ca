//! The binary `hyperslab-function`: see the library's module `serve`.

use std::process::ExitCode;

use hyperslab_function::serve::{Arguments, run};
use hyperslab_index::{Error, ErrorKind, Result};
use hyperslab_store::Environment;

const HELP: &str = "\
Reads chunks next to the data and sends back the cells that a query wants.

Usage: hyperslab-function [--listen ADDRESS:PORT] [--no-signature]

Runs as a Lambda function where AWS_LAMBDA_RUNTIME_API is set, as an Azure custom handler where
FUNCTIONS_CUSTOMHANDLER_PORT is, as a Cloud Run service where PORT is, and otherwise as a plain
server, which prints its address as JSON.

  --listen ADDRESS:PORT   listen there as a plain server (127.0.0.1:0, a free port)
  --no-signature          take requests from everybody; on loopback only

  HYPERSLAB_FUNCTION_ALLOW            URL prefixes that may be read, separated by commas
  HYPERSLAB_FUNCTION_SECRET           the secret that signs requests, or
  HYPERSLAB_FUNCTION_SECRET_FILE      a file that holds it
  HYPERSLAB_FUNCTION_MAX_ANSWER       bytes of the longest answer, such as 64MiB
  HYPERSLAB_FUNCTION_MAX_MEMORY       bytes that all calls together may hold
  HYPERSLAB_FUNCTION_MAX_SECONDS      seconds of the longest call
  HYPERSLAB_FUNCTION_MAX_CONCURRENT   calls at a time";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|a| a == "--help" || a == "-h") {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    if arguments.iter().any(|a| a == "--version" || a == "-V") {
        println!("hyperslab-function {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    match start(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hyperslab-function: {error}");
            match error.kind() {
                ErrorKind::Invalid => ExitCode::from(2),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn start(arguments: Vec<String>) -> Result<()> {
    let arguments = Arguments::parse(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| {
            Error::unavailable("the function's threads cannot be started").with_source(e)
        })?;
    let done = runtime.block_on(run(&arguments, &Environment::process()));
    // A decoder that is still busy must not keep the process alive.
    runtime.shutdown_background();
    done
}
