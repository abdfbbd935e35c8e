//! The macro that reads the table of metrics.

/// Lists metrics: a doc comment, which is the metric's help; `field: Type = "name" { label: values }`, for histograms their
/// bounds in brackets; and who counts it: `node`, or `workers`, who tell their node.
macro_rules! table {
    ($(
        $(#[doc = $help:literal])+
        $field:ident: $value:ident $([$bounds:expr])? = $name:literal { $($label:ident: $values:expr),* } $who:ident;
    )*) => {
        /// All metrics.
        pub(crate) struct Table {
            $( $(#[doc = $help])+ pub(crate) $field: $crate::family::Family<$crate::values::$value>, )*
        }

        impl Default for Table {
            fn default() -> Self {
                let allowed = std::sync::Arc::new($crate::labels::Allowed::default());
                Self { $( $field: {
                    const ABOUT: &$crate::family::About = &$crate::family::About {
                        name: $name,
                        help: concat!($($help),+).trim_ascii(),
                        labels: &[
                            $( $crate::labels::Label { name: stringify!($label), values: $values } ),*
                        ],
                        bounds: $crate::declare::bounds!($($bounds)?),
                        is_told: $crate::declare::is_told!($who),
                    };
                    $crate::family::Family::new(ABOUT, &allowed)
                }, )* }
            }
        }

        impl Table {
            /// All metrics, in the order of the table.
            pub(crate) fn all(&self) -> Vec<&dyn $crate::family::AnyFamily> {
                vec![ $( &self.$field, )* ]
            }

            /// The metric of this name.
            pub(crate) fn named(&self, name: &str) -> Option<&dyn $crate::family::AnyFamily> {
                match name {
                    $( $name => Some(&self.$field), )*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use table;

macro_rules! bounds {
    () => {
        &[]
    };
    ($bounds:expr) => {
        &$bounds
    };
}
pub(crate) use bounds;

macro_rules! is_told {
    (workers) => {
        true
    };
    (node) => {
        false
    };
}
pub(crate) use is_told;
