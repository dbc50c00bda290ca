//! `profile` as a program, and what later reads make of its file.

use hyperslab_sim::{FunctionConfig, FunctionModel, Sim, SimConfig};

use super::support::{Place, cloud, cloud_with, counting, npy};

/// A cloud with a function that is quick and has limits of its own.
fn with_function() -> Sim {
    let model = FunctionModel {
        alpha_millis_per_mib: 2.0,
        beta_millis: 3.0,
        max_concurrent: 77,
        max_answer_bytes: 5 << 20,
        memory_bytes: 300 << 20,
        ..FunctionModel::default()
    };
    let function = FunctionConfig {
        model,
        ..FunctionConfig::default()
    };
    cloud_with(SimConfig {
        function: Some(function),
        ..SimConfig::default()
    })
}

/// A brief measurement of the bucket `data`.
const BRIEF: [&str; 6] = ["profile", "s3://data", "--bytes", "2MiB", "--seconds", "1"];

fn brief<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&BRIEF[..], more].concat()
}

/// The one profile that is kept in the place's configuration folder.
fn kept(place: &Place) -> String {
    let files = place.files();
    let mut profiles = files.iter().filter(|file| file.contains("profiles/"));
    let found = profiles.next().unwrap_or_else(|| panic!("{files:?}"));
    assert_eq!(profiles.next(), None);
    found.clone()
}

#[test]
fn a_measured_profile_is_kept_drawn_and_used() {
    let sim = with_function();
    let url = sim.function_url().unwrap();
    let place = Place::near(&sim);
    let options = ["--function", &url, "--plot", "curves.png", "--json"];
    let json = place.run(&brief(&options)).json();
    let function = &json["profile"]["function"];
    assert_eq!(function["concurrency"], 77);
    assert_eq!(function["max_answer_bytes"], 5 << 20);
    assert_eq!(function["memory_bytes"], 300 << 20);
    assert_eq!(function["max_seconds"], 60.0);
    assert!(
        json["profile"]["network"]["latency_seconds"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    assert_eq!(
        json["file"],
        place.path(&kept(&place)).display().to_string()
    );
    assert!(place.read("curves.png").starts_with(b"\x89PNG"));
    assert_eq!(sim.objects("data").unwrap().keys(), Vec::<String>::new());

    let text = place
        .run(&brief(&["--function", &url, "--plot", "curves.svg"]))
        .ok();
    for word in [
        "request time",
        "its limits",
        "77 calls",
        "N_min",
        "curves.svg",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(place.read("curves.svg").starts_with(b"<svg"));

    // Reads plan with it: a mark that only this profile has shows in the estimate.
    place.write("in.npy", &npy("'<i4'", false, "(40, 50)", &counting(2000)));
    place.run(&["put", "in.npy", "s3://data/a.zarr"]).ok();
    let estimate = || {
        let json = place.run(&["explain", "s3://data/a.zarr", "--json"]).json();
        json["estimate"]["seconds"].as_f64().unwrap()
    };
    let file = kept(&place);
    let measured = String::from_utf8(place.read(&file)).unwrap();
    assert!(estimate() < 5.0);
    let line = measured
        .lines()
        .find(|line| line.starts_with("latency_seconds"));
    let slow = measured.replace(line.unwrap(), "latency_seconds = 1000.0");
    place.write(&file, slow.as_bytes());
    assert!(estimate() >= 1000.0);
}

#[test]
fn a_profile_that_is_broken_or_of_another_endpoint_is_one_sentence() {
    let sim = cloud();
    let place = Place::near(&sim);
    place.write("in.npy", &npy("'<i4'", false, "(4,)", &counting(4)));
    place.run(&["put", "in.npy", "s3://data/a.zarr"]).ok();
    place.run(&BRIEF).ok();
    let file = kept(&place);
    let measured = String::from_utf8(place.read(&file)).unwrap();
    let name = measured.lines().next().unwrap().to_owned();
    assert!(name.contains(&sim.endpoint()), "{name}");
    for (text, words) in [
        (String::new(), "cannot be used"),
        ("name = 1".to_owned(), "cannot be used"),
        (
            measured.replace(&name, "name = \"https://elsewhere/x\""),
            "elsewhere",
        ),
        (
            measured.replace("window = 256", "window = 0"),
            "no requests at all",
        ),
    ] {
        place.write(&file, text.as_bytes());
        let err = place.run(&["get", "s3://data/a.zarr"]).fails(2);
        assert!(
            err.contains(words) && err.contains("remove the file"),
            "{err}"
        );
        // What is named outright wins, and what is not there is not missed.
        place
            .run(&["get", "s3://data/a.zarr", "--profile", "aws"])
            .ok();
    }
    std::fs::remove_file(place.path(&file)).unwrap();
    place.run(&["get", "s3://data/a.zarr", "--frozen"]).ok();
}

#[test]
fn reads_call_the_function_that_is_named() {
    let sim = with_function();
    let url = sim.function_url().unwrap();
    let place = Place::near(&sim);
    place.write("in.npy", &npy("'<i4'", false, "(40, 50)", &counting(2000)));
    place.run(&["put", "in.npy", "s3://data/a.zarr"]).ok();
    let get = ["get", "s3://data/a.zarr[3:9, ::7]", "--planner", "function"];
    let plain = [&get[..], &["--format", "csv"][..]].concat();
    let without = place.run(&plain).ok();
    assert_eq!(sim.meter().function.calls, 0);
    let named = [&plain[..], &["--function", &url][..]].concat();
    assert_eq!(place.run(&named).ok(), without);
    let calls = sim.meter().function.calls;
    assert!(calls > 0);
    let place = place.with("HYPERSLAB_FUNCTION", &url);
    assert_eq!(place.run(&plain).ok(), without);
    assert!(sim.meter().function.calls > calls);
}

#[test]
fn wrong_functions_and_pictures_are_refused_before_anything_is_written() {
    let sim = cloud();
    let place = Place::near(&sim);
    for (options, words) in [
        (["--plot", "curves.pdf"], ".png"),
        (["--function", "mars"], "https://"),
        (
            ["--function-secret-file", "absent"],
            "--function-secret-file",
        ),
    ] {
        let more: &[&str] = match options[0] {
            "--function-secret-file" => &["--function", "http://127.0.0.1:9"],
            _ => &[],
        };
        let all = [&brief(&options)[..], more].concat();
        let err = place.run(&all).fails(2);
        assert!(err.contains(words), "{err}");
    }
    assert_eq!(sim.meter().put, 0);
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", dead.local_addr().unwrap());
    drop(dead);
    place.run(&brief(&["--function", &url])).fails(6);
    assert_eq!(sim.meter().put, 0);
}
