//! The API described by its own types: the OpenAPI 3.1 document and the page for people are made from the signatures of the
//! handlers, so that they cannot say anything else than the code.
//!
//! | file | holds |
//! |---|---|
//! | this one | [`Describe`]: what a handler's type says about its route |
//! | `operation.rs` | one operation while it is being described |
//! | `inputs.rs` | ids, queries, headers and bodies |
//! | `answers.rs` | the types that handlers answer with |
//! | `headers.rs` | headers that many answers have |
//! | `document.rs` | the OpenAPI document of all rooms |
//! | `example.rs` | an example of a schema |
//! | `page.rs` | the document as a page for people |
//!
//! A handler takes a state, a guard and inputs, and answers with an [`Answer`]. A handler with anything else in its signature
//! has no [`Describe`], and its route does not compile.

mod answers;
mod document;
mod example;
mod headers;
mod inputs;
mod operation;
mod page;

use axum::extract::State;

pub(crate) use self::answers::{
    Accepted, Answer, Created, Either, Kind, Located, NoContent, ReadyOrNot, Sent,
};
pub(crate) use self::document::Document;
pub use self::document::openapi;
pub(crate) use self::operation::{Operation, Place};
pub(crate) use self::page::escaped;
use crate::auth::{Guard, Right};

/// A part of a handler's signature that reads something of the request.
pub(crate) trait Input {
    /// Adds to the description of the operation.
    fn describe(operation: &mut Operation<'_>);
}

/// A handler that begins with a state and a guard, and whose inputs and answer describe themselves. `T` is the tuple by
/// which axum tells handlers apart.
pub(crate) trait Describe<T> {
    /// The right that the guard demands.
    const RIGHT: Right;

    /// Whether the operation's answer tells of a change that is in the audit log.
    const AUDITED: bool;

    /// Describes the operation.
    fn describe(operation: &mut Operation<'_>);
}

macro_rules! describe {
    ($($input:ident),*) => {
        impl<F, Fut, M, S, G, $($input),*> Describe<(M, State<S>, G, $($input,)*)> for F
        where
            F: Fn(State<S>, G, $($input),*) -> Fut,
            Fut: Future,
            Fut::Output: Answer,
            G: Guard,
            $($input: Input,)*
        {
            const RIGHT: Right = G::RIGHT;
            const AUDITED: bool = <Fut::Output as Answer>::AUDITED;

            fn describe(operation: &mut Operation<'_>) {
                G::describe(operation);
                $( $input::describe(operation); )*
                <Fut::Output as Answer>::describe(operation);
            }
        }
    };
}

describe!();
describe!(A);
describe!(A, B);
describe!(A, B, C);
describe!(A, B, C, D);
