//! The beginning of links that are handed out.

/// The address before the path of a link. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct LinkBase(std::sync::Arc<str>);

impl LinkBase {
    /// The address of the CDN before the server, or of the server itself; without either, links are paths.
    pub fn new(cdn: Option<&url::Url>, public: Option<&url::Url>) -> Self {
        let base = cdn.or(public).map_or("", |url| url.as_str());
        Self(base.trim_end_matches('/').into())
    }

    /// The address, without a slash at its end.
    pub(crate) fn base(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cdn_comes_first_and_a_path_is_kept() {
        let url = |text: &str| text.parse::<url::Url>().unwrap();
        let (cdn, public) = (url("https://cdn.example.org"), url("https://example.org/tickets/"));
        assert_eq!(LinkBase::new(Some(&cdn), Some(&public)).base(), "https://cdn.example.org");
        assert_eq!(LinkBase::new(None, Some(&public)).base(), "https://example.org/tickets");
        assert_eq!(LinkBase::new(None, None).base(), "");
    }
}
