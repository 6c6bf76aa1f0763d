//! The parameters of a request, from its address or a form.

/// Names and values in their order.
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// The parameters of a query string or form; what is not UTF-8 in it becomes the replacement character.
    pub(crate) fn of(text: &str) -> Parameters {
        Parameters::of_bytes(text.as_bytes())
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Parameters {
        Parameters(form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// Adds those of a form, behind the ones that are there.
    pub(crate) fn extend(&mut self, more: Parameters) {
        self.0.extend(more.0);
    }

    /// The first value of a name.
    pub(crate) fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}
