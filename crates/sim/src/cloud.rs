//! Everything that all connections of a simulator share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use hyperslab_index::Result;

use crate::config::SimConfig;
use crate::fault::Faults;
use crate::meter::{Meter, MeterSnapshot};
use crate::network::Network;
use crate::network::shaper::Shaper;
use crate::objects::ObjectMap;
use crate::sync::{read, write};

/// The simulated cloud, without its listeners.
pub(crate) struct Cloud {
    pub(crate) objects: Arc<ObjectMap>,
    pub(crate) faults: Faults,
    pub(crate) meter: Arc<Meter>,
    shaper: RwLock<Arc<Shaper>>,
    requests: AtomicU64,
}

impl Cloud {
    /// Checks the configuration and builds the cloud that it describes.
    pub(crate) fn new(config: &SimConfig) -> Result<Self> {
        config.network.validate()?;
        let cloud = Cloud {
            objects: Arc::new(ObjectMap::open(config.folder.clone())?),
            faults: Faults::new(config.faults.clone())?,
            meter: Arc::new(Meter::new(config.prices.clone(), config.place)),
            shaper: RwLock::new(Arc::new(Shaper::new(config.network.clone()))),
            requests: AtomicU64::new(0),
        };
        for bucket in &config.buckets {
            if cloud.objects.bucket(bucket).is_err() {
                cloud.objects.create_bucket(bucket)?;
            }
        }
        Ok(cloud)
    }

    /// The network as it is now. Requests under way keep the one they began with.
    pub(crate) fn shaper(&self) -> Arc<Shaper> {
        Arc::clone(&read(&self.shaper))
    }

    pub(crate) fn set_network(&self, network: Network) -> Result<()> {
        network.validate()?;
        *write(&self.shaper) = Arc::new(Shaper::new(network));
        Ok(())
    }

    /// The number of the next request.
    pub(crate) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn snapshot(&self) -> MeterSnapshot {
        MeterSnapshot {
            faults: self.faults.counts(),
            ..self.meter.snapshot()
        }
    }

    pub(crate) fn reset_meter(&self) {
        self.meter.reset();
        self.faults.reset_counts();
    }
}
