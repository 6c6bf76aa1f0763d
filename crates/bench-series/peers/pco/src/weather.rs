//! The weather of nycflights13: a series for each of three airports, an hour between two values.

use crate::Failure;
use crate::columns::{Column, Values};

/// Columns of numbers, by their place.
const NUMBERS: [(usize, &str); 8] = [
    (5, "temperature"),
    (6, "dew point"),
    (7, "humidity"),
    (8, "direction of the wind"),
    (9, "speed of the wind"),
    (11, "precipitation"),
    (12, "pressure"),
    (13, "visibility"),
];
const AIRPORTS: [&str; 3] = ["EWR", "JFK", "LGA"];

/// Days of a year before each month.
const DAYS_BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

/// Microseconds from the beginning of the year.
fn hour(row: &[&str]) -> Result<i64, Failure> {
    let number = |place: usize| Ok::<i64, Failure>(row.get(place).ok_or("a row that is too short")?.parse()?);
    let before = DAYS_BEFORE.get(number(2)? as usize - 1).ok_or("no such month")?;
    Ok(((before + number(3)?) * 24 + number(4)?) * 3_600_000_000)
}

/// Each column, one airport after the other; values that are not there are left out.
pub fn columns(file: &str) -> Result<Vec<Column>, Failure> {
    let rows: Vec<Vec<&str>> = file.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let of = |airport: &'static str| rows.iter().filter(move |row| row.first() == Some(&airport));
    let hours = AIRPORTS.into_iter().flat_map(of).map(|row| hour(row)).collect::<Result<Vec<i64>, Failure>>()?;
    let mut all = vec![Column { name: "weather: hours".to_owned(), values: Values::Integers(hours) }];
    for (place, name) in NUMBERS {
        let cells = AIRPORTS.into_iter().flat_map(of).filter_map(|row| row.get(place).copied());
        let values = cells.filter(|cell| *cell != "NA").map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        all.push(Column { name: format!("weather: {name}"), values: Values::Doubles(values) });
    }
    Ok(all)
}
