//! Our own simulator, in S3's language with signatures and in Google's.

use std::sync::Arc;

use hyperslab_sim::{Sim, SimConfig};
use hyperslab_store::{Environment, Options};

use super::Place;
use crate::{Failure, Outcome};

const BUCKET: &str = "suite";

/// A simulator, and the places on it.
#[derive(Debug, Clone)]
pub struct SimPlace {
    sim: Arc<Sim>,
}

impl SimPlace {
    /// Starts a simulator with one bucket, on threads of its own; not for async tasks.
    pub fn start(mut config: SimConfig) -> Outcome<Self> {
        if !config.buckets.iter().any(|name| name == BUCKET) {
            config.buckets.push(BUCKET.to_owned());
        }
        config.gcs_port = Some(0);
        Ok(SimPlace {
            sim: Arc::new(Sim::start_in_thread(config)?),
        })
    }

    /// The simulator itself: its faults, meter and objects.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// The name of the bucket.
    pub fn bucket(&self) -> &'static str {
        BUCKET
    }

    /// The bucket in S3's language, with the first pair of keys.
    pub fn s3(&self) -> Place {
        let options = Options::new().with_environment(self.sim.env().into_iter().collect());
        Place::new(
            "simulator (S3)",
            format!("s3://{BUCKET}"),
            options,
            Arc::clone(&self.sim),
        )
    }

    /// The bucket in S3's language, without any credentials but those that are added by
    /// [`Place::with`].
    pub fn s3_bare(&self) -> Place {
        let options = Options::new()
            .with_environment(Environment::default())
            .with("endpoint", self.sim.endpoint())
            .with("region", self.sim.region());
        Place::new(
            "simulator (S3)",
            format!("s3://{BUCKET}"),
            options,
            Arc::clone(&self.sim),
        )
    }

    /// The bucket in Google's language.
    pub fn google(&self) -> Outcome<Place> {
        let account = self
            .sim
            .gcs_service_account_json()
            .ok_or_else(|| Failure::new("the simulator does not speak Google's language"))?;
        let environment = [("GOOGLE_SERVICE_ACCOUNT_KEY", account)]
            .into_iter()
            .collect();
        let options = Options::new().with_environment(environment);
        let url = format!("gs://{BUCKET}");
        Ok(Place::new(
            "simulator (Google)",
            url,
            options,
            Arc::clone(&self.sim),
        ))
    }
}
