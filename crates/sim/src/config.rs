//! What to simulate.

use std::fmt;
use std::path::PathBuf;

use hyperslab_index::{Error, Result};

use crate::fault::FaultPlan;
use crate::function::FunctionConfig;
use crate::network::Network;
use hyperslab_plan::{Place, PriceBook};

/// The configuration of a simulator. The default is an empty store in memory on a free port of
/// the loopback, without shaping and faults, free of charge, with one pair of keys.
///
/// ```
/// use hyperslab_sim::{Network, SimConfig};
/// let config = SimConfig {
///     buckets: vec!["data".into()],
///     network: Network::preset("bench")?,
///     ..SimConfig::default()
/// };
/// # Ok::<(), hyperslab_index::Error>(())
/// ```
#[derive(Clone)]
pub struct SimConfig {
    /// Port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// Also serve the same objects in Google's XML language, on this port (0: a free one).
    pub gcs_port: Option<u16>,
    /// Region that the store says it is in.
    pub region: String,
    /// Who may do what. The first pair is the one that [`crate::Sim::env`] hands out.
    pub keys: Vec<KeyPair>,
    /// Session tokens that are refused with `ExpiredToken`.
    pub expired_tokens: Vec<String>,
    /// Buckets that anyone may read and list without a signature.
    pub public_buckets: Vec<String>,
    /// Buckets to make at the start.
    pub buckets: Vec<String>,
    /// Keep objects in this folder, where they survive a restart; `None` keeps them in memory.
    pub folder: Option<PathBuf>,
    /// The network between client and store.
    pub network: Network,
    /// Faults to inject.
    pub faults: FaultPlan,
    /// What requests and bytes cost.
    pub prices: PriceBook,
    /// Where the client is said to be.
    pub place: Place,
    /// The function service beside the store; `None` for none.
    pub function: Option<FunctionConfig>,
    /// Threads of [`crate::Sim::start_in_thread`].
    pub threads: usize,
}

/// An access key and its secret, and what they are good for.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyPair {
    /// The public half.
    pub access_key: String,
    /// The secret half.
    pub secret_key: String,
    /// A token that requests with this key must carry; `None` for none.
    pub session_token: Option<String>,
    /// False: listings are refused, and absent keys answer 403 instead of 404, as S3 has it.
    pub may_list: bool,
    /// False: every write is refused.
    pub may_write: bool,
}

impl KeyPair {
    /// A pair that may do everything.
    pub fn new(access_key: impl Into<String>, secret_key: impl Into<String>) -> Self {
        KeyPair {
            access_key: access_key.into(),
            secret_key: secret_key.into(),
            session_token: None,
            may_list: true,
            may_write: true,
        }
    }
}

/// Without secrets and tokens.
impl fmt::Debug for SimConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimConfig")
            .field("port", &self.port)
            .field("gcs_port", &self.gcs_port)
            .field("region", &self.region)
            .field("keys", &self.keys)
            .field("public_buckets", &self.public_buckets)
            .field("buckets", &self.buckets)
            .field("folder", &self.folder)
            .field("network", &self.network)
            .field("faults", &self.faults)
            .field("prices", &self.prices.name)
            .field("place", &self.place)
            .field("function", &self.function)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair")
            .field("access_key", &self.access_key)
            .field("may_list", &self.may_list)
            .field("may_write", &self.may_write)
            .finish_non_exhaustive()
    }
}

impl Default for SimConfig {
    fn default() -> Self {
        SimConfig {
            port: 0,
            gcs_port: None,
            region: "us-east-1".into(),
            keys: vec![KeyPair::new("SIMACCESSKEY", "sim-secret-key")],
            expired_tokens: Vec::new(),
            public_buckets: Vec::new(),
            buckets: Vec::new(),
            folder: None,
            network: Network::unshaped(),
            faults: FaultPlan::default(),
            prices: PriceBook::free(),
            place: Place::default(),
            function: None,
            threads: 2,
        }
    }
}

impl SimConfig {
    /// Checks what the parts cannot check themselves.
    pub(crate) fn validate(&self) -> Result<()> {
        if self.keys.is_empty() {
            return Err(Error::invalid("the simulator has no pair of keys")
                .with_hint("add a KeyPair, or keep the default one"));
        }
        let mut names: Vec<&str> = self
            .keys
            .iter()
            .map(|pair| pair.access_key.as_str())
            .collect();
        names.sort_unstable();
        if names.iter().any(|name| name.is_empty()) || names.windows(2).any(|two| two[0] == two[1])
        {
            return Err(Error::invalid(
                "the simulator's access keys are not distinct names",
            ));
        }
        Ok(())
    }
}
