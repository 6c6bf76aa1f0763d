//! Dates and times of Python as the database counts them.

use counterfoil::value::parse;
use counterfoil::{Error, Kind, Value};
use pyo3::prelude::*;
use pyo3::types::{PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyTime, PyTimeAccess, PyTzInfoAccess};

use crate::errors::{exception, misuse};

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * SECOND;

/// Days since 1970-01-01.
pub fn days(date: &Bound<'_, PyDate>) -> PyResult<i32> {
    let (year, month, day) = (date.get_year(), date.get_month(), date.get_day());
    parse::days(i64::from(year), i64::from(month), i64::from(day)).ok_or_else(|| impossible(date.py()))
}

fn impossible(py: Python<'_>) -> PyErr {
    exception(py, &Error::new(Kind::Input, "a date that cannot be"))
}

/// A moment: with a time zone it becomes UTC, without one it stays as it is.
pub fn moment(moment: &Bound<'_, PyDateTime>) -> PyResult<Value> {
    let (year, month, day) = (moment.get_year(), moment.get_month(), moment.get_day());
    let days = parse::days(i64::from(year), i64::from(month), i64::from(day)).ok_or_else(|| impossible(moment.py()))?;
    let seconds =
        u32::from(moment.get_hour()) * 3600 + u32::from(moment.get_minute()) * 60 + u32::from(moment.get_second());
    let fraction = i128::from(moment.get_microsecond()) * 1000 + nanosecond(moment)?;
    let local = i128::from(days) * DAY + i128::from(seconds) * SECOND + fraction;
    match offset(moment)? {
        Some(offset) => Ok(Value::TimestampTz(local - offset)),
        None => Ok(Value::Timestamp(local)),
    }
}

/// What pandas' moments have behind the microseconds.
fn nanosecond(moment: &Bound<'_, PyDateTime>) -> PyResult<i128> {
    if moment.get_type().is(moment.py().get_type::<PyDateTime>()) {
        return Ok(0);
    }
    match moment.getattr_opt("nanosecond")? {
        Some(nanosecond) => nanosecond.extract(),
        None => Ok(0),
    }
}

/// Nanoseconds east of UTC.
fn offset(moment: &Bound<'_, PyDateTime>) -> PyResult<Option<i128>> {
    if moment.get_tzinfo().is_none() {
        return Ok(None);
    }
    let offset = moment.call_method0("utcoffset")?;
    if offset.is_none() {
        return Ok(None);
    }
    let offset = offset.cast_into::<PyDelta>()?;
    let seconds = i128::from(offset.get_days()) * 86_400 + i128::from(offset.get_seconds());
    Ok(Some(seconds * SECOND + i128::from(offset.get_microseconds()) * 1000))
}

/// A time of day.
pub fn time(time: &Bound<'_, PyTime>) -> PyResult<Value> {
    if time.get_tzinfo().is_some() {
        let error = misuse("a time of day with a time zone cannot be a parameter").advise("convert it to a datetime");
        return Err(exception(time.py(), &error));
    }
    let minutes = i64::from(time.get_hour()) * 60 + i64::from(time.get_minute());
    let seconds = minutes * 60 + i64::from(time.get_second());
    Ok(Value::Time(seconds * 1_000_000 + i64::from(time.get_microsecond())))
}

/// numpy's datetime64, which counts without a time zone.
pub fn numpy(any: &Bound<'_, PyAny>) -> PyResult<Value> {
    let count = |unit: &str| any.call_method1("astype", (unit,))?.call_method1("astype", ("int64",))?.extract::<i64>();
    let microseconds = count("datetime64[us]")?;
    if microseconds == i64::MIN {
        return Ok(Value::Null);
    }
    // What is beyond 64 bits of microseconds comes back as another moment, of a unit that is coarser.
    let kind = any.getattr("dtype")?;
    let unit = any.py().import("numpy")?.call_method1("datetime_data", (&kind,))?.get_item(0)?.extract::<String>()?;
    let is_fine = matches!(unit.as_str(), "us" | "ns" | "ps" | "fs" | "as");
    let back = any.call_method1("astype", ("datetime64[us]",))?.call_method1("astype", (kind,))?;
    if !is_fine && !back.eq(any)? {
        let error = Error::new(Kind::Input, "a datetime64 is farther away than microseconds can be counted");
        return Err(exception(any.py(), &error));
    }
    // Nanoseconds reach from 1677 to 2262; beyond, numpy would count wrongly without a word.
    let reach = i64::MAX / 1000 - 1;
    if (-reach..=reach).contains(&microseconds) {
        return Ok(Value::Timestamp(i128::from(count("datetime64[ns]")?)));
    }
    Ok(Value::Timestamp(i128::from(microseconds) * 1000))
}

/// A moment as a series counts it: an integer in its unit, or any of Python's.
///
/// # Errors
/// An exception for what is no moment, and for one that the unit cannot count.
pub fn counted(any: &Bound<'_, PyAny>, nanoseconds: bool) -> PyResult<i64> {
    let nanosecond = match crate::values::value(any)? {
        Value::Integer(count) => return Ok(count),
        Value::Timestamp(nanosecond) | Value::TimestampTz(nanosecond) => nanosecond,
        Value::Date(days) => i128::from(days) * DAY,
        other => {
            let text = format!("a time was expected, not a {}", other.kind());
            return Err(exception(
                any.py(),
                &misuse(text).advise("give a datetime, or an integer in the column's unit"),
            ));
        }
    };
    let count = if nanoseconds { nanosecond } else { nanosecond.div_euclid(1000) };
    i64::try_from(count)
        .map_err(|_| exception(any.py(), &Error::new(Kind::Input, "a time that the column cannot hold")))
}
