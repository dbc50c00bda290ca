//! `doctor`: finds out, step by step, why a store does not work.

use clap::Args;
use hyperslab::store::{self, Environment, StoreRef};
use hyperslab::{Node, Result};
use serde_json::{Value, json};

use super::describe;
use crate::address::{Address, without_query};
use crate::connector;
use crate::context::Context;
use crate::doctor::{Status, Step, clock, endpoint, requests, settings, verdict};

const EXAMPLES: &str = "Examples:
  hyperslab doctor s3://bucket/sky.zarr
  hyperslab doctor --write s3://bucket/scratch
  hyperslab doctor --json az://container/x
  hyperslab doctor                          the HDF5 connector, in every libhdf5 that is found";

/// Check a URL step by step: configuration, network, credentials, permissions, clock, metadata
///
/// Without a URL: find out whether HDF5 programs on this machine load the connector.
///
/// Exits with 1 if a check fails; the last line says what is wrong. Names of settings are shown,
/// never their values.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URL of a store, a group or an array
    url: Option<String>,
    /// Also write a small object below the URL, and remove it again
    #[arg(long, requires = "url")]
    write: bool,
}

/// The list of checks, printed as it grows.
struct Checkup<'a> {
    context: &'a Context,
    steps: Vec<Step>,
}

impl Checkup<'_> {
    /// Notes a step; true unless it failed.
    fn note(&mut self, step: Step) -> Result<bool> {
        if !self.context.json {
            self.context.line(&step.text())?;
        }
        let fine = step.status != Status::Failed;
        self.steps.push(step);
        Ok(fine)
    }
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let mut checkup = Checkup {
        context,
        steps: Vec::new(),
    };
    match &arguments.url {
        Some(url) => examine(url, arguments.write, &mut checkup).await?,
        None => {
            for step in connector::check() {
                checkup.note(step)?;
            }
        }
    }
    let verdict = verdict(&checkup.steps);
    let healthy = checkup
        .steps
        .iter()
        .all(|step| step.status != Status::Failed);
    let steps: Vec<Value> = checkup.steps.iter().map(Step::json).collect();
    context.result(
        &context.bold(&verdict),
        || json!({"healthy": healthy, "verdict": verdict, "checks": steps}),
    )?;
    Ok(healthy)
}

/// Goes through the checks; those that need what an earlier one did not find are left out.
async fn examine(url: &str, write: bool, checkup: &mut Checkup<'_>) -> Result<()> {
    const URL: &str = "URL";
    let url = match Address::whole(url, "doctor") {
        Ok(url) => url,
        Err(error) => return checkup.note(Step::error(URL, &error)).map(drop),
    };
    let opened = match store::open_with(&url, &store::Options::new()) {
        Ok(opened) => opened,
        Err(error) => return checkup.note(Step::error(URL, &error)).map(drop),
    };
    let kind = opened.kind;
    checkup.note(Step::passed(
        URL,
        format!("{} is a {kind} store", without_query(&url)),
    ))?;
    let environment = Environment::process();
    checkup.note(settings::check(kind, &url, &environment))?;

    let place = endpoint::find(kind, &url, &environment);
    let (step, address) = endpoint::check(place.as_ref()).await;
    if !checkup.note(step)? {
        return Ok(());
    }
    checkup.note(clock::check(place.as_ref(), address).await)?;

    let store: StoreRef = match kind.is_remote() {
        // What is wrong shall show at once, not after minutes of retries.
        true => {
            let quick = store::Options::new()
                .with("retries", "0")
                .with("timeout", "15s");
            store::open_with(&url, &quick)?.store
        }
        false => opened.store,
    };
    let (steps, listed) = requests::access(&store, kind.is_remote()).await;
    let mut reachable = true;
    for step in steps {
        let credentials = step.name == "credentials";
        let fine = checkup.note(step)?;
        reachable &= fine || !credentials;
    }
    if !reachable {
        return Ok(());
    }
    checkup.note(requests::read(&store, listed).await)?;
    match write {
        true => checkup.note(requests::write(&store).await)?,
        false => checkup.note(Step::skipped("write", "not tried; --write tries it"))?,
    };
    checkup.note(requests::latency(&store).await)?;
    let step = metadata(&url, checkup.context).await;
    checkup.note(step).map(drop)
}

/// Opens the node, and compares a group's copy of metadata with the nodes' own.
async fn metadata(url: &str, context: &Context) -> Step {
    const NAME: &str = "metadata";
    let node = match context.session.open(url).await {
        Ok(node) => node,
        Err(e) if e.is_not_found() => {
            return Step::skipped(NAME, "there is no array or group at this URL");
        }
        Err(e) => return Step::error(NAME, &e),
    };
    let group = match node {
        Node::Array(array) => {
            return Step::passed(
                NAME,
                format!("an array, {}", describe::brief(&array.meta())),
            );
        }
        Node::Group(group) => group,
    };
    if group.meta().consolidated.is_none() {
        return Step::passed(NAME, "a group without consolidated metadata");
    }
    match group.disagreements().await {
        Err(e) => Step::error(NAME, &e),
        Ok(list) => match list.split_first() {
            None => Step::passed(
                NAME,
                "a group; its consolidated metadata agrees with every node",
            ),
            Some((first, rest)) => {
                let more = if rest.is_empty() {
                    String::new()
                } else {
                    format!(" (and {} more)", rest.len())
                };
                Step::failed(
                    NAME,
                    format!("the consolidated metadata disagrees: {first}{more}"),
                    "each node's own metadata is right; consolidate the hierarchy again",
                )
            }
        },
    }
}
