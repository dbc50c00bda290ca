//! Named networks, kept as dated data in `presets.toml`.

use std::collections::BTreeMap;

use hyperslab_index::{Error, Result};
use serde::Deserialize;

use super::Network;
use crate::function::FunctionModel;

const PRESETS: &str = include_str!("../../presets.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Preset {
    /// Where the numbers come from; for people, and so that no preset goes without.
    #[serde(rename = "source")]
    _source: String,
    network: Network,
    /// The function next to the store, where one is known.
    function: Option<FunctionModel>,
}

fn presets() -> Result<BTreeMap<String, Preset>> {
    toml::from_str(PRESETS).map_err(|error| {
        Error::internal("the built-in network presets cannot be read").with_source(error)
    })
}

impl FunctionModel {
    /// The function of the network preset of this name.
    pub fn preset(name: &str) -> Result<Self> {
        Network::preset(name)?;
        let model = presets()?.remove(name).and_then(|preset| preset.function);
        let model = model.ok_or_else(|| {
            Error::invalid(format!("the network preset {name:?} has no function"))
                .with_hint("aws, azure, gcp and bench have one")
        })?;
        model.validate()?;
        Ok(model)
    }
}

impl Network {
    /// The preset of this name; [`Network::preset_names`] lists them.
    pub fn preset(name: &str) -> Result<Self> {
        let mut presets = presets()?;
        let Some(preset) = presets.remove(name) else {
            let names: Vec<&str> = presets.keys().map(String::as_str).collect();
            return Err(
                Error::invalid(format!("there is no network preset named {name:?}"))
                    .with_hint(format!("the presets are {}", names.join(", "))),
            );
        };
        preset.network.validate()?;
        Ok(preset.network)
    }

    /// The names that [`Network::preset`] knows.
    pub fn preset_names() -> Result<Vec<String>> {
        Ok(presets()?.into_keys().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_valid() {
        let names = Network::preset_names().unwrap();
        assert_eq!(
            names,
            ["aws", "azure", "bench", "fast", "gcp", "local", "unshaped"]
        );
        for name in names {
            Network::preset(&name).unwrap();
        }
        assert_eq!(Network::preset("unshaped").unwrap(), Network::unshaped());
        for name in ["aws", "azure", "gcp", "bench"] {
            assert!(FunctionModel::preset(name).unwrap().beta_millis > 0.0);
        }
        assert!(FunctionModel::preset("local").is_err());
    }

    #[test]
    fn an_unknown_preset_names_the_known_ones() {
        let error = Network::preset("moon").unwrap_err();
        assert!(
            error.hint().unwrap().contains("aws, azure, bench"),
            "{error}"
        );
    }
}
