//! Servers that do not do what they are asked for: their reason is told, as far as it is one that can be printed.

use counterfoil_mirror::site::Fetch as _;
use counterfoil_transport::Http;

use crate::server::{Reply, serve};

#[test]
fn why_a_server_refuses_is_told_in_a_line_of_its_own() {
    let long = "x".repeat(100_000);
    let cases: [(u16, &str, &str); 8] = [
        (403, "this mirror does not keep tables of this owner", "403: this mirror does not keep tables of this owner"),
        (400, "one line\nand another", "400: one line"),
        (500, "red \u{1b}[31m and so on", "500: red "),
        (401, "<html><title>sign in</title>", "401"),
        (409, "{\"error\": 7}", "409"),
        (418, "", "418"),
        (422, "whatever", "too much for this server: ask for less"),
        (503, "whatever", "the server is loading it, or busy"),
    ];
    let told = |status: u16, body: &str| {
        let body = body.to_owned();
        let address = serve(None, move |_| Reply { status, header: String::new(), body: body.clone().into_bytes() });
        let mut http = Http::at(&format!("http://{address}")).expect("an address");
        assert_eq!(http.ask("update", b"?", 2000).err(), http.fetch("update", 2000).err());
        http.fetch("update", 2000).expect_err("a refusal")
    };
    for (status, body, says) in cases {
        let expected = if says.starts_with(char::is_numeric) { format!("status {says}") } else { says.to_owned() };
        assert_eq!(told(status, body).trim_end(), format!("update: {expected}").trim_end());
    }
    assert!(told(403, &long).len() < 300);
}
