//! A simulated function service beside the store: cold starts, GB-seconds and failures.
//!
//! The handler is the real one, of `hyperslab-function`, reading the simulator's own objects over
//! S3 through a second, unshaped door, as a function inside a cloud would; how long a call takes is
//! not measured but computed, α·bytes + β, so that the same calls have the same times and bill. The
//! answer leaves through the same network as those of the store.
//!
//! Invariant: a call is billed for its computed seconds, whatever this machine is busy with.

mod answer;
mod call;
mod config;
mod instances;
mod server;

pub use config::{FunctionConfig, FunctionFailure, FunctionFailures, FunctionModel};

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, RwLock};

use hyperslab_function::{AllowList, Host, Limits, Service, ServiceConfig};
use hyperslab_index::Result;
use hyperslab_store::{Environment, Options};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::cloud::Cloud;
use crate::config::SimConfig;
use crate::fault::FaultPlan;
use crate::network::Network;
use crate::s3::S3Door;
use instances::Instances;

/// A running function service.
pub(crate) struct SimFunction {
    cloud: Arc<Cloud>,
    service: Service,
    model: FunctionModel,
    instances: Arc<Instances>,
    pub(crate) failures: RwLock<FunctionFailures>,
    calls: AtomicU64,
}

impl SimFunction {
    /// Starts the service and the door through which it reads.
    pub(crate) async fn start(
        cloud: &Arc<Cloud>,
        config: &SimConfig,
        function: &FunctionConfig,
        stop: &watch::Receiver<bool>,
    ) -> Result<(Arc<SimFunction>, SocketAddr, Vec<JoinHandle<()>>)> {
        function.validate()?;
        let inside = SimConfig {
            network: Network::unshaped(),
            faults: FaultPlan::default(),
            buckets: Vec::new(),
            folder: None,
            function: None,
            ..config.clone()
        };
        // The same objects, but no network, no faults and a meter that nobody reads: what the
        // function reads is counted by the call.
        let mut inner = Cloud::new(&inside)?;
        inner.objects = Arc::clone(&cloud.objects);
        let inner = Arc::new(inner);
        let (listener, inner_address) = crate::server::bind(0).await?;
        let door = Arc::new(S3Door::new(&inner, &inside));
        let store = tokio::spawn(crate::server::run(listener, inner, door, stop.clone()));

        let allow = match function.allow.is_empty() {
            true => AllowList::new(config.buckets.iter().map(|name| format!("s3://{name}")))?,
            false => AllowList::new(&function.allow)?,
        };
        let model = function.model.clone();
        // Lambda alone slows long answers down; what the model says is all there is otherwise.
        let host = match model.stream_bandwidth {
            Some(_) => Host::Aws,
            None => Host::Local,
        };
        let service = Service::new(ServiceConfig {
            allow,
            secret: function.secret.clone(),
            limits: Limits {
                max_answer: model.max_answer_bytes,
                max_memory: model.memory_bytes,
                // The instances are counted here, and each answers one call.
                max_concurrent: u32::MAX,
                memory: Some(model.memory_bytes),
                concurrency: Some(model.max_concurrent),
                ..Limits::of(host)
            },
            options: Options::new().with_environment(environment(inner_address, config)),
        })?;
        let this = Arc::new(SimFunction {
            cloud: Arc::clone(cloud),
            service,
            instances: Arc::new(Instances::new(&model)),
            model,
            failures: RwLock::new(function.failures.clone()),
            calls: AtomicU64::new(0),
        });
        let (listener, address) = crate::server::bind(function.port).await?;
        let calls = tokio::spawn(server::run(listener, Arc::clone(&this), stop.clone()));
        Ok((this, address, vec![store, calls]))
    }
}

/// What sends the function's reads to the inner door.
fn environment(address: SocketAddr, config: &SimConfig) -> Environment {
    let key = config.keys.first();
    let mut pairs = vec![
        ("AWS_ENDPOINT_URL", format!("http://{address}")),
        ("AWS_REGION", config.region.clone()),
    ];
    if let Some(key) = key {
        pairs.push(("AWS_ACCESS_KEY_ID", key.access_key.clone()));
        pairs.push(("AWS_SECRET_ACCESS_KEY", key.secret_key.clone()));
        let token = key.session_token.clone();
        pairs.extend(token.map(|token| ("AWS_SESSION_TOKEN", token)));
    }
    pairs.into_iter().collect()
}
