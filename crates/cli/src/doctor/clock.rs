//! The server's clock against ours: signatures are refused when they are minutes apart.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, SystemTime};

use chrono::DateTime;

use super::Step;
use super::endpoint::Endpoint;

const NAME: &str = "clock";
const PATIENCE: Duration = Duration::from_secs(5);
/// Clouds refuse signatures that are 15 minutes off; a clock that is this far off is unwell.
const TOO_FAR: i64 = 300;

/// Asks the server for its date over a plain connection.
pub(crate) async fn check(endpoint: Option<&Endpoint>, address: Option<SocketAddr>) -> Step {
    let (Some(endpoint), Some(address)) = (endpoint, address) else {
        return Step::skipped(NAME, "there is no server to ask");
    };
    if endpoint.encrypted {
        return Step::skipped(
            NAME,
            "the server's date is only asked over plain http, and this one speaks https",
        );
    }
    let host = format!("{}:{}", endpoint.host, endpoint.port);
    let asked = tokio::task::spawn_blocking(move || ask(address, &host));
    match asked.await.ok().flatten() {
        None => Step::skipped(NAME, "the server does not tell its date"),
        Some(skew) if skew.abs() > TOO_FAR => Step::failed(
            NAME,
            format!(
                "this machine's clock is {} seconds {} the server's",
                skew.abs(),
                if skew > 0 { "ahead of" } else { "behind" }
            ),
            "set the clock: signed requests are refused when it is minutes off",
        ),
        Some(skew) => Step::passed(
            NAME,
            format!("within {} seconds of the server's", skew.abs().max(1)),
        ),
    }
}

/// Our time minus the server's, in seconds.
fn ask(address: SocketAddr, host: &str) -> Option<i64> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let request = format!("HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut head = Vec::new();
    // Headers are small; whatever follows is of no interest.
    stream.take(16 << 10).read_to_end(&mut head).ok()?;
    let server = date_of(&String::from_utf8_lossy(&head))?;
    let ours = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .ok()?
        .as_secs();
    Some(i64::try_from(ours).ok()? - server)
}

/// The Date header in seconds since 1970.
fn date_of(head: &str) -> Option<i64> {
    let line = head
        .lines()
        .find(|line| line.to_ascii_lowercase().starts_with("date:"))?;
    DateTime::parse_from_rfc2822(line[5..].trim())
        .ok()
        .map(|date| date.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_found() {
        let head = "HTTP/1.1 200 OK\r\nServer: x\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n";
        assert_eq!(date_of(head), Some(784_111_777));
        assert_eq!(date_of("HTTP/1.1 200 OK\r\n\r\n"), None);
        assert_eq!(date_of("Date: yesterday"), None);
    }
}
