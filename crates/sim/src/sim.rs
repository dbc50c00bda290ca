//! A running simulator.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use hyperslab_index::{Error, Result};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::cloud::Cloud;
use crate::config::SimConfig;
use crate::fault::Faults;
use crate::front::Door;
use crate::function::{FunctionFailures, SimFunction};
use crate::gcs::GcsDoor;
use crate::meter::MeterSnapshot;
use crate::network::Network;
use crate::objects::ObjectsHandle;
use crate::procedural::Procedural;
use crate::s3::S3Door;
use crate::server;
use crate::sync::write;

/// A simulated cloud that listens on the loopback until it is stopped or dropped.
pub struct Sim {
    cloud: Arc<Cloud>,
    config: SimConfig,
    s3_address: SocketAddr,
    gcs_address: Option<SocketAddr>,
    function: Option<(Arc<SimFunction>, SocketAddr)>,
    stop: watch::Sender<bool>,
    host: Host,
}

/// What runs the listeners.
enum Host {
    Tasks(Vec<JoinHandle<()>>),
    Thread(Option<std::thread::JoinHandle<()>>),
}

impl Sim {
    /// Starts a simulator on the runtime of the caller.
    pub async fn start(config: SimConfig) -> Result<Sim> {
        config.validate()?;
        let cloud = Arc::new(Cloud::new(&config)?);
        let (stop, stopped) = watch::channel(false);
        let (listener, s3_address) = server::bind(config.port).await?;
        let s3: Arc<dyn Door> = Arc::new(S3Door::new(&cloud, &config));
        let mut tasks = vec![tokio::spawn(server::run(
            listener,
            Arc::clone(&cloud),
            s3,
            stopped.clone(),
        ))];
        let mut gcs_address = None;
        if let Some(port) = config.gcs_port {
            let (listener, address) = server::bind(port).await?;
            let gcs: Arc<dyn Door> = Arc::new(GcsDoor::new(Arc::clone(&cloud.objects)));
            tasks.push(tokio::spawn(server::run(
                listener,
                Arc::clone(&cloud),
                gcs,
                stopped.clone(),
            )));
            gcs_address = Some(address);
        }
        let mut function = None;
        if let Some(wanted) = &config.function {
            let (running, address, more) =
                SimFunction::start(&cloud, &config, wanted, &stopped).await?;
            tasks.extend(more);
            function = Some((running, address));
        }
        Ok(Sim {
            cloud,
            config,
            s3_address,
            gcs_address,
            function,
            stop,
            host: Host::Tasks(tasks),
        })
    }

    /// Starts a simulator on threads of its own, for programs without a runtime. It must be
    /// called outside any runtime, as it blocks until the simulator listens.
    pub fn start_in_thread(config: SimConfig) -> Result<Sim> {
        let failed = |error: std::io::Error| {
            Error::unavailable("the simulator's threads cannot be started").with_source(error)
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(config.threads.max(1))
            .thread_name("sim")
            .enable_all()
            .build()
            .map_err(failed)?;
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("sim-main".into())
            .spawn(move || {
                runtime.block_on(async {
                    match Sim::start(config).await {
                        Ok(sim) => {
                            let mut stopped = sim.stop.subscribe();
                            let _ = sender.send(Ok(sim));
                            let _ = stopped.changed().await;
                        }
                        Err(error) => drop(sender.send(Err(error))),
                    }
                });
                runtime.shutdown_timeout(Duration::from_secs(1));
            })
            .map_err(failed)?;
        let started = receiver.recv().map_err(|error| {
            Error::internal("the simulator ended before it had started").with_source(error)
        })?;
        let mut sim = started?;
        sim.host = Host::Thread(Some(thread));
        Ok(sim)
    }

    /// Where the S3 server listens, such as `http://127.0.0.1:4711`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.s3_address)
    }

    /// Where Google's language is spoken, if [`SimConfig::gcs_port`] asks for it.
    pub fn gcs_endpoint(&self) -> Option<String> {
        self.gcs_address.map(|address| format!("http://{address}"))
    }

    /// Where the function listens, if [`SimConfig::function`] asks for it.
    pub fn function_url(&self) -> Option<String> {
        let (_, address) = self.function.as_ref()?;
        Some(format!("http://{address}"))
    }

    /// Changes how the function fails, for all calls that arrive from now on.
    pub fn set_function_failures(&self, failures: FunctionFailures) -> Result<()> {
        failures.validate()?;
        let Some((function, _)) = &self.function else {
            return Err(Error::invalid("the simulator has no function")
                .with_hint("set SimConfig::function"));
        };
        *write(&function.failures) = failures;
        Ok(())
    }

    /// A service account that sends object_store's Google client to the simulator; `None` if
    /// there is no Google endpoint.
    pub fn gcs_service_account_json(&self) -> Option<String> {
        let account = serde_json::json!({
            "gcs_base_url": self.gcs_endpoint()?,
            "disable_oauth": true,
            "client_email": "",
            "private_key": "",
            "private_key_id": "",
        });
        Some(account.to_string())
    }

    /// The first access key.
    pub fn access_key(&self) -> &str {
        self.config.keys.first().map_or("", |pair| &pair.access_key)
    }

    /// The secret of the first access key.
    pub fn secret_key(&self) -> &str {
        self.config.keys.first().map_or("", |pair| &pair.secret_key)
    }

    /// The region that the store says it is in.
    pub fn region(&self) -> &str {
        &self.config.region
    }

    /// The environment variables that send S3 clients to the simulator.
    pub fn env(&self) -> Vec<(String, String)> {
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        let mut env = vec![
            pair("AWS_ENDPOINT_URL", &self.endpoint()),
            pair("AWS_ACCESS_KEY_ID", self.access_key()),
            pair("AWS_SECRET_ACCESS_KEY", self.secret_key()),
            pair("AWS_REGION", self.region()),
            pair("AWS_DEFAULT_REGION", self.region()),
            pair("AWS_ALLOW_HTTP", "true"),
        ];
        let token = self
            .config
            .keys
            .first()
            .and_then(|pair| pair.session_token.as_deref());
        env.extend(token.map(|token| pair("AWS_SESSION_TOKEN", token)));
        env
    }

    /// What has been counted since the start or the last reset.
    pub fn meter(&self) -> MeterSnapshot {
        self.cloud.snapshot()
    }

    /// Counts from zero again.
    pub fn reset_meter(&self) {
        self.cloud.reset_meter();
    }

    /// The fault plan, to look at and to change.
    pub fn faults(&self) -> &Faults {
        &self.cloud.faults
    }

    /// The network as it is now.
    pub fn network(&self) -> Network {
        self.cloud.shaper().network().clone()
    }

    /// Changes the network for all requests that arrive from now on.
    pub fn set_network(&self, network: Network) -> Result<()> {
        self.cloud.set_network(network)
    }

    /// Makes a bucket.
    pub fn create_bucket(&self, name: &str) -> Result<()> {
        self.cloud.objects.create_bucket(name)?;
        Ok(())
    }

    /// The objects of a bucket, behind the clients' back.
    pub fn objects(&self, bucket: &str) -> Result<ObjectsHandle> {
        Ok(ObjectsHandle::new(self.cloud.objects.bucket(bucket)?))
    }

    /// Makes computed objects appear under a prefix of a bucket.
    pub fn mount(&self, bucket: &str, prefix: &str, set: Arc<dyn Procedural>) -> Result<()> {
        self.cloud.objects.bucket(bucket)?.mount(prefix, set);
        Ok(())
    }

    /// Stops listening, ends all connections and waits until that is done.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        match &mut self.host {
            Host::Tasks(tasks) => {
                for task in tasks.drain(..) {
                    let _ = task.await;
                }
            }
            Host::Thread(thread) => {
                if let Some(thread) = thread.take() {
                    let _ = tokio::task::spawn_blocking(move || thread.join()).await;
                }
            }
        }
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Host::Thread(thread) = &mut self.host
            && let Some(thread) = thread.take()
        {
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Sim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sim")
            .field("endpoint", &self.endpoint())
            .finish_non_exhaustive()
    }
}
