//! Where the binary runs, told by the variables that each cloud sets.

use std::net::{Ipv4Addr, SocketAddr};

use hyperslab_index::{Error, Result};
use hyperslab_store::Environment;

use crate::Host;

/// The command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    /// Where to listen; `None` is 127.0.0.1 and a free port.
    pub listen: Option<SocketAddr>,
    /// Take requests from everybody; on loopback only.
    pub no_signature: bool,
}

/// Where the binary runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// AWS Lambda: ask the runtime's interface for work.
    Lambda {
        /// `host:port` of the interface.
        api: String,
    },
    /// An Azure Functions custom handler.
    Azure {
        /// Where to listen.
        address: SocketAddr,
    },
    /// A Cloud Run service.
    CloudRun {
        /// Where to listen.
        address: SocketAddr,
    },
    /// A plain server.
    Local {
        /// Where to listen.
        address: SocketAddr,
    },
}

impl Arguments {
    /// Reads the arguments after the program's name.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut parsed = Arguments::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let listen = match argument.as_str() {
                "--no-signature" => {
                    parsed.no_signature = true;
                    continue;
                }
                "--listen" => arguments.next().unwrap_or_default(),
                other => match other.strip_prefix("--listen=") {
                    Some(address) => address.to_owned(),
                    None => {
                        return Err(Error::invalid(format!("{other:?} is not an option"))
                            .with_hint(
                                "the options are --listen ADDRESS:PORT and --no-signature",
                            ));
                    }
                },
            };
            let address = listen.parse().map_err(|_| {
                Error::invalid(format!("{listen:?} is not an address to listen on"))
                    .with_hint("write for example --listen 127.0.0.1:8080")
            })?;
            parsed.listen = Some(address);
        }
        Ok(parsed)
    }
}

impl Mode {
    /// Chooses the mode from the environment.
    pub fn choose(arguments: &Arguments, environment: &Environment) -> Result<Self> {
        let port = |name: &str| -> Result<Option<u16>> {
            let parse = |text: &str| {
                text.parse()
                    .map_err(|_| Error::invalid(format!("{name} is {text:?}, which is no port")))
            };
            environment.get(name).map(parse).transpose()
        };
        if let Some(api) = environment.get("AWS_LAMBDA_RUNTIME_API") {
            return Ok(Mode::Lambda {
                api: api.to_owned(),
            });
        }
        if let Some(port) = port("FUNCTIONS_CUSTOMHANDLER_PORT")? {
            // The Functions host is on the same machine and the only caller.
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            return Ok(Mode::Azure { address });
        }
        if let Some(address) = arguments.listen {
            return Ok(Mode::Local { address });
        }
        if let Some(port) = port("PORT")? {
            let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
            return Ok(Mode::CloudRun { address });
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Ok(Mode::Local { address })
    }

    /// Whose limits apply.
    pub fn host(&self) -> Host {
        match self {
            Mode::Lambda { .. } => Host::Aws,
            Mode::Azure { .. } => Host::Azure,
            Mode::CloudRun { .. } => Host::Google,
            Mode::Local { .. } => Host::Local,
        }
    }

    /// True for a plain server that only this machine reaches. The Azure handler listens on
    /// loopback, too, but the Functions host brings it everybody's requests.
    pub fn is_loopback(&self) -> bool {
        matches!(self, Mode::Local { address } if address.ip().is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Mode> {
        let arguments = Arguments::parse(arguments.iter().map(|a| (*a).to_owned()))?;
        Mode::choose(&arguments, &variables.iter().copied().collect())
    }

    #[test]
    fn the_environment_chooses() {
        let lambda = mode(&[], &[("AWS_LAMBDA_RUNTIME_API", "h:1"), ("PORT", "2")]).unwrap();
        assert_eq!((lambda.host(), lambda.is_loopback()), (Host::Aws, false));
        let azure = mode(&[], &[("FUNCTIONS_CUSTOMHANDLER_PORT", "1"), ("PORT", "2")]).unwrap();
        assert_eq!((azure.host(), azure.is_loopback()), (Host::Azure, false));
        let google = mode(&[], &[("PORT", "2")]).unwrap();
        assert_eq!((google.host(), google.is_loopback()), (Host::Google, false));
        let local = mode(&["--listen", "127.0.0.1:0"], &[("PORT", "2")]).unwrap();
        assert_eq!((local.host(), local.is_loopback()), (Host::Local, true));
        let open = mode(&["--listen=0.0.0.0:80"], &[]).unwrap();
        assert_eq!((open.host(), open.is_loopback()), (Host::Local, false));
        assert!(mode(&[], &[]).unwrap().is_loopback());
    }

    #[test]
    fn nonsense_is_named() {
        assert!(mode(&["--listen"], &[]).is_err());
        assert!(
            mode(&["--port", "1"], &[])
                .unwrap_err()
                .message()
                .contains("--port")
        );
        assert!(mode(&[], &[("PORT", "http")]).is_err());
    }
}
