//! Measures what a network preset promises: latency, and bandwidth of one and of many connections.
//!
//! `cargo run -p hyperslab-sim --example calibrate [preset]`, with `bench` if none is named.
//! Prints configured and seen side by side. The client is bare TCP, so that its own cost is small.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use hyperslab_index::{Error, Result};
use hyperslab_sim::{Latency, Network, Sim, SimConfig};

const BUCKET: &str = "calibrate";
const MB: usize = 1_000_000;

fn main() -> Result<()> {
    let preset = std::env::args().nth(1).unwrap_or_else(|| "bench".into());
    let network = Network::preset(&preset)?;
    let sim = Sim::start_in_thread(SimConfig {
        buckets: vec![BUCKET.into()],
        public_buckets: vec![BUCKET.into()],
        // Uploads go through Google's door, which needs no signature.
        gcs_port: Some(0),
        network: Network {
            rate_limit: None,
            ..network.clone()
        },
        ..SimConfig::default()
    })?;
    let objects = sim.objects(BUCKET)?;
    objects.put("tiny", vec![1; 100])?;
    objects.put("large", vec![2; 64 * MB])?;
    let download = address(&sim.endpoint());
    let upload = address(&sim.gcs_endpoint().unwrap_or_default());

    let latency = match network.latency {
        Latency::Constant { millis } => Some(millis),
        Latency::LogNormal { median_millis, .. } => Some(median_millis),
        Latency::None => None,
    };
    let mut connection = connect(&download)?;
    get(&mut connection, "tiny", 100)?;
    let mut times: Vec<f64> = (0..100)
        .map(|_| timed(|| get(&mut connection, "tiny", 100)).map(|time| time * 1e3))
        .collect::<Result<_>>()?;
    times.sort_by(f64::total_cmp);
    row("latency, ms, median", latency, times[50]);
    row(
        "latency, ms, mean",
        latency,
        times.iter().sum::<f64>() / 100.0,
    );

    let wait = latency.unwrap_or(0.0) / 1e3;
    let one = network.connection_bandwidth.or(network.total_bandwidth);
    let seconds = timed(|| get(&mut connection, "large", 64 * MB))?;
    row(
        "one connection down, MB/s",
        one.map(|b| b / 1e6),
        64.0 / (seconds - wait),
    );
    let bytes = vec![3_u8; 32 * MB];
    let mut connection = connect(&upload)?;
    let seconds = timed(|| put(&mut connection, "up", &bytes))?;
    row(
        "one connection up, MB/s",
        one.map(|b| b / 1e6),
        32.0 / (seconds - wait),
    );

    for clients in [8, 32] {
        let limits = [
            network.connection_bandwidth.map(|b| b * clients as f64),
            network.total_bandwidth,
        ];
        let all = limits.into_iter().flatten().reduce(f64::min);
        let each = 256 * MB / clients;
        let seconds = timed(|| {
            together(clients, |_| {
                let mut connection = connect(&download)?;
                range(&mut connection, "large", each)
            })
        })?;
        let name = format!("{clients} connections down, MB/s");
        row(&name, all.map(|b| b / 1e6), 256.0 / (seconds - wait));
        let bytes = vec![4_u8; 128 * MB / clients];
        let seconds = timed(|| {
            together(clients, |n| {
                put(&mut connect(&upload)?, &format!("up/{n}"), &bytes)
            })
        })?;
        let name = format!("{clients} connections up, MB/s");
        row(&name, all.map(|b| b / 1e6), 128.0 / (seconds - wait));
    }
    Ok(())
}

fn row(name: &str, configured: Option<f64>, seen: f64) {
    match configured {
        Some(configured) => println!(
            "{name:32} configured {configured:9.2}  seen {seen:9.2}  {:+.2} %",
            (seen / configured - 1.0) * 100.0
        ),
        None => println!("{name:32} configured   no limit  seen {seen:9.2}"),
    }
}

fn address(endpoint: &str) -> String {
    endpoint
        .strip_prefix("http://")
        .unwrap_or(endpoint)
        .to_string()
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

fn together(clients: usize, work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..clients).map(|n| scope.spawn(move || work(n))).collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .map_err(|_| Error::internal("a client thread died"))?
        })
    })
}

fn connect(address: &str) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .map_err(failed)?;
    Ok(stream)
}

fn get(connection: &mut TcpStream, key: &str, length: usize) -> Result<()> {
    let request = format!("GET /{BUCKET}/{key} HTTP/1.1\r\nhost: sim\r\n\r\n");
    connection.write_all(request.as_bytes()).map_err(failed)?;
    receive(connection, length)
}

fn range(connection: &mut TcpStream, key: &str, length: usize) -> Result<()> {
    let request = format!(
        "GET /{BUCKET}/{key} HTTP/1.1\r\nhost: sim\r\nrange: bytes=0-{}\r\n\r\n",
        length - 1
    );
    connection.write_all(request.as_bytes()).map_err(failed)?;
    receive(connection, length)
}

fn put(connection: &mut TcpStream, key: &str, bytes: &[u8]) -> Result<()> {
    let head = format!(
        "PUT /{BUCKET}/{key} HTTP/1.1\r\nhost: sim\r\ncontent-length: {}\r\n\r\n",
        bytes.len()
    );
    connection.write_all(head.as_bytes()).map_err(failed)?;
    connection.write_all(bytes).map_err(failed)?;
    receive(connection, 0)
}

/// Reads one answer with a body of this length.
fn receive(connection: &mut TcpStream, length: usize) -> Result<()> {
    let mut buffer = vec![0; 1 << 20];
    let mut head = Vec::new();
    let mut body = loop {
        let read = connection.read(&mut buffer).map_err(failed)?;
        if read == 0 {
            return Err(Error::unavailable("the simulator closed the connection"));
        }
        head.extend_from_slice(&buffer[..read]);
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            break head.len() - end - 4;
        }
    };
    let status = String::from_utf8_lossy(&head[..head.len().min(12)]).into_owned();
    if !status.starts_with("HTTP/1.1 2") {
        return Err(Error::unavailable(format!(
            "the simulator answered {status}"
        )));
    }
    while body < length {
        let read = connection.read(&mut buffer).map_err(failed)?;
        if read == 0 {
            return Err(Error::unavailable("the simulator closed the connection"));
        }
        body += read;
    }
    Ok(())
}

fn failed(error: std::io::Error) -> Error {
    Error::unavailable(format!("the connection to the simulator failed: {error}"))
}
