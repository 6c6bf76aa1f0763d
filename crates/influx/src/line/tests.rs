use super::*;

/// A line written back in one way, so that a test can say what it read.
fn read(line: &str) -> Result<String, (usize, Problem)> {
    let mut parser = Parser::new();
    let line = parser.parse(line.as_bytes()).map_err(|fault| (fault.offset, fault.problem))?;
    let mut text = line.measurement().unescaped().into_owned();
    for (key, value) in line.tags() {
        text += &format!("|{}={}", key.unescaped(), value.unescaped());
    }
    for (key, value) in line.fields() {
        let value = match value {
            Value::Float(value) => format!("{value:?}"),
            Value::Integer(value) => format!("{value}i"),
            Value::Unsigned(value) => format!("{value}u"),
            Value::Boolean(value) => value.to_string(),
            Value::Text(value) => format!("{:?}", value.unescaped()),
        };
        text += &format!(" {}={value}", key.unescaped());
    }
    Ok(text + &line.time().map_or(String::new(), |time| format!(" @{time}")))
}

#[test]
fn lines_of_every_form() {
    for (line, expected) in [
        ("cpu usage=0.5", "cpu usage=0.5"),
        ("cpu,host=a,region=eu usage=0.5,n=4i,m=5u,up=t 17", "cpu|host=a|region=eu usage=0.5 n=4i m=5u up=true @17"),
        (r"my\ cpu\,x,ho\=st=a\ b\,c us\ age=1 -5", r"my cpu,x|ho=st=a b,c us age=1.0 @-5"),
        ("a=b c=1", "a=b c=1.0"),
        (r#"m s="",t="a \"b\" \\ \n c=d,e" 1"#, "m s=\"\" t=\"a \\\"b\\\" \\\\ \\\\n c=d,e\" @1"),
        ("m s=\"one\ntwo\"", "m s=\"one\\ntwo\""),
        ("  m   a=1   7  ", "m a=1.0 @7"),
        (r"m,path=C:\dir\x a=1", r"m|path=C:\dir\x a=1.0"),
        ("température,où=là °=1", "température|où=là °=1.0"),
    ] {
        assert_eq!(read(line).as_deref(), Ok(expected), "{line}");
    }
}

#[test]
fn what_is_wrong_is_said_where_it_is() {
    for (line, offset, problem) in [
        ("", 0, Problem::NoMeasurement),
        (",a=b c=1", 0, Problem::NoMeasurement),
        ("m", 1, Problem::NoFields),
        ("m,t=a", 5, Problem::NoFields),
        ("m,t a=1", 2, Problem::TagWithoutValue),
        ("m,=x a=1", 2, Problem::EmptyName),
        ("m,t= a=1", 4, Problem::EmptyName),
        ("m,t=a=b a=1", 5, Problem::EqualsInTag),
        ("m a", 2, Problem::FieldWithoutValue),
        ("m a=", 4, Problem::FieldWithoutValue),
        ("m a=1,", 6, Problem::EmptyName),
        ("m a=1,,b=2", 6, Problem::EmptyName),
        ("m a=one", 4, Problem::NotAValue),
        ("m a=1e400", 4, Problem::OutOfRange),
        (r#"m a="x"#, 4, Problem::UnclosedString),
        (r#"m a="x\"#, 4, Problem::UnclosedString),
        (r#"m a="x"y"#, 7, Problem::AfterString),
        ("m a=1 1.5", 6, Problem::NotATime),
        ("m a=1 99999999999999999999", 6, Problem::TimeOutOfRange),
        ("m a=1 1 1", 8, Problem::AfterTime),
    ] {
        assert_eq!(read(line), Err((offset, problem)), "{line}");
    }
    let mut parser = Parser::new();
    let fault = parser.parse(b"m,t=\xff a=1").unwrap_err();
    assert_eq!(fault, Fault::at(4, Problem::NotUtf8));
}

#[test]
fn limits_are_limits() {
    let long = "n".repeat(NAME_BYTES_MAX);
    assert!(read(&format!("{long},{long}=v {long}=1")).is_ok());
    for line in [format!("{long}n a=1"), format!("m,{long}n=v a=1"), format!("m {long}n=1")] {
        assert!(matches!(read(&line), Err((_, Problem::Limit(_, NAME_BYTES_MAX)))));
    }
    let tags = |count| (0..count).map(|tag| format!(",t{tag}=v")).collect::<String>();
    assert!(read(&format!("m{} a=1", tags(TAGS_MAX))).is_ok());
    assert!(matches!(read(&format!("m{} a=1", tags(TAGS_MAX + 1))), Err((_, Problem::Limit(_, TAGS_MAX)))));
    let fields = |count| (0..count).map(|field| format!("f{field}=1")).collect::<Vec<_>>().join(",");
    assert!(read(&format!("m {}", fields(FIELDS_MAX))).is_ok());
    assert!(matches!(read(&format!("m {}", fields(FIELDS_MAX + 1))), Err((_, Problem::Limit(_, FIELDS_MAX)))));
    let string = |bytes| format!("m a=\"{}\"", "x".repeat(bytes - 6));
    assert!(read(&string(LINE_BYTES_MAX)).is_ok());
    assert!(matches!(read(&string(LINE_BYTES_MAX + 1)), Err((_, Problem::Limit(_, LINE_BYTES_MAX)))));
}
