//! What is left when a writer dies at its k-th request.
//!
//! A fixed workload runs over a store that fails from request k on, as if the process had been
//! killed there; half of the time the request before takes effect but its answer is lost. Then a
//! clean session looks at what is there.
//!
//! Invariant that is checked: with the step that was interrupted, every chunk reads as before or as
//! after that step, shapes and attributes are those before or after, the hierarchy opens or does
//! not exist yet, nothing is an error but a stale consolidated copy (which is noticed, and healed
//! by consolidating), and the step can be done again.

mod inspect;
mod workload;

use std::sync::Arc;

use hyperslab::Session;
use hyperslab_store::{Faults, Faulty};

use self::workload::Workload;
use crate::servers::Place;
use crate::{Failure, Outcome};

/// What a run of kills found.
#[derive(Debug, Default)]
pub struct KillReport {
    /// Requests of the workload when nobody kills it.
    pub requests: u64,
    /// At how many points it was killed.
    pub points: u64,
    /// After how many kills the consolidated copy was behind, which readers noticed.
    pub copies_behind: u64,
    /// What was broken, in sentences; empty if the promise holds.
    pub violations: Vec<String>,
}

/// Kills the workload at `points` requests, spread over its whole length.
pub async fn kill_test(place: &Place, points: u64) -> Outcome<KillReport> {
    let workload = Workload::new()?;
    let requests = whole_run(place, &workload).await?;
    let mut report = KillReport {
        requests,
        points,
        ..KillReport::default()
    };
    for point in 0..points {
        // The last point lies beyond the end: nothing is killed, and all must be there.
        let kill = 1 + point * requests / points.saturating_sub(1).max(1);
        let loses_answer = point % 2 == 1;
        let name = format!("kill-{point}.zarr");
        let killed = Killed { kill, loses_answer };
        match one(place, &workload, &name, killed).await {
            Ok(behind) => report.copies_behind += u64::from(behind),
            Err(failure) => report.violations.push(failure.within(killed).to_string()),
        }
    }
    Ok(report)
}

/// When the writer died.
#[derive(Debug, Clone, Copy)]
struct Killed {
    kill: u64,
    loses_answer: bool,
}

impl std::fmt::Display for Killed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lost = if self.loses_answer {
            ", the answer before it lost"
        } else {
            ""
        };
        write!(f, "killed at request {}{lost}", self.kill)
    }
}

/// Runs the workload undisturbed, checks its result, and counts its requests.
async fn whole_run(place: &Place, workload: &Workload) -> Outcome<u64> {
    let session = Session::default();
    let name = "kill-none.zarr";
    let counter = Arc::new(Faulty::new(place.store(name)?, Faults::default()));
    let url = place.mount_store(&session, name, counter.clone())?;
    let (done, error) = workload.run(&session, &url).await?;
    if let Some(error) = error {
        return Err(Failure::from(error).within(format!("step {done} without any kill")));
    }
    inspect::inspect(place, workload, name, done).await?;
    Ok(counter.requests())
}

/// Kills one run and looks at what is left; true if the consolidated copy was behind.
async fn one(place: &Place, workload: &Workload, name: &str, killed: Killed) -> Outcome<bool> {
    let session = Session::default();
    let faults = Faults {
        kill_at: Some(killed.kill),
        kill_loses_answer: killed.loses_answer,
        ..Faults::default()
    };
    let store = Arc::new(Faulty::new(place.store(name)?, faults));
    let url = place.mount_store(&session, name, store)?;
    let (done, _) = workload.run(&session, &url).await?;
    let named = |failure: Failure| failure.within(workload.name(done));
    inspect::inspect(place, workload, name, done)
        .await
        .map_err(named)
}
