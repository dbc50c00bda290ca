//! Where a suite stores its arrays: a base URL, how to open what is below it, and what keeps it
//! running.

use std::any::Any;
use std::sync::Arc;

use hyperslab::Session;
use hyperslab_store::{Options, StoreRef, join_url, open_with};

use crate::Outcome;

/// A place for arrays. Clones share it; a server behind it ends with the last one.
#[derive(Clone)]
pub struct Place {
    name: &'static str,
    url: String,
    options: Options,
    /// The server or folder behind the place.
    _keep: Arc<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Place({}, {})", self.name, self.url)
    }
}

impl Place {
    pub(super) fn new(
        name: &'static str,
        url: String,
        options: Options,
        keep: impl Any + Send + Sync,
    ) -> Self {
        Place {
            name,
            url,
            options,
            _keep: Arc::new(keep),
        }
    }

    /// Memory of this process; places of the same name are one.
    pub fn memory(name: &str) -> Self {
        Place::new(
            "memory",
            format!("memory://testkit-{name}"),
            Options::new(),
            (),
        )
    }

    /// A temporary folder of the local disk.
    pub fn disk() -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        let url = folder.path().to_string_lossy().into_owned();
        Ok(Place::new("local disk", url, Options::new(), folder))
    }

    /// What the place is, for tables and messages.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The URL that everything is below.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL of `name` below the place.
    pub fn url_of(&self, name: &str) -> Outcome<String> {
        Ok(join_url(&self.url, name)?)
    }

    /// The same place with another option, such as other credentials.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        Place {
            options: self.options.clone().with(name, value),
            ..self.clone()
        }
    }

    /// Another base URL on the same server.
    #[must_use]
    pub fn at(&self, url: &str) -> Self {
        Place {
            url: url.to_owned(),
            ..self.clone()
        }
    }

    /// The store below the place at `name`.
    pub fn store(&self, name: &str) -> Outcome<StoreRef> {
        Ok(open_with(&self.url_of(name)?, &self.options)?.store)
    }

    /// Makes `session` find the hierarchy `name` of this place, and returns its URL.
    ///
    /// Local places are opened by the session itself, as any program would; servers need options
    /// that a URL must not hold, so their stores are mounted.
    pub fn mount(&self, session: &Session, name: &str) -> Outcome<String> {
        let url = self.url_of(name)?;
        if self.is_remote()? {
            self.mount_store(session, name, self.store(name)?)?;
        }
        Ok(url)
    }

    /// Makes `session` use `store` for the hierarchy `name`, and returns its URL.
    ///
    /// The folder above is mounted too: a session looks there for a hierarchy that the new one
    /// belongs to, and would otherwise ask the real cloud that the URL names.
    pub fn mount_store(&self, session: &Session, name: &str, store: StoreRef) -> Outcome<String> {
        let url = self.url_of(name)?;
        if self.is_remote()? {
            session.mount(&self.url, open_with(&self.url, &self.options)?.store)?;
        }
        session.mount(&url, store)?;
        Ok(url)
    }

    fn is_remote(&self) -> Outcome<bool> {
        Ok(open_with(&self.url, &self.options)?.kind.is_remote())
    }
}
