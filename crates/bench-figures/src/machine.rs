//! Where and when a table was measured.

/// Prints the lines that every table begins with.
pub fn print() {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown processor");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("machine: {}, {cores} cores", model.trim_start_matches([' ', '\t', ':']));
    println!("date:    {}", date());
    println!("command: {}", std::env::args().collect::<Vec<_>>().join(" "));
}

/// Today as year-month-day, counted from the Unix epoch by the calendar's 400-year cycle.
fn date() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let days = (now / 86_400) as i64 + 719_468;
    let (cycle, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + cycle * 400 + i64::from(month <= 2);
    format!("{year}-{month:02}-{:02}", of_year - (153 * shifted + 2) / 5 + 1)
}
