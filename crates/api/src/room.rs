//! A room: the routes of one subject. A route is listed with the right that its handler's type demands, and described by
//! that type. A handler whose type does not say both does not compile (`describe.rs`).

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use http::Method;

use crate::app::App;
use crate::auth::Right;
use crate::describe::{Describe, Document, Operation};
use crate::idempotency::{Once, Repeats};
use crate::problem::{Code, Problem};
use crate::scope::{Reach, reach};

/// A route: method, path and the right it demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, with its parameters in braces.
    pub path: &'static str,
    /// The right that the handler's guard demands.
    pub right: Right,
    /// How keys with a scope reach it; `None`: they do not.
    pub reach: Option<Reach>,
    /// The name of the operation, for generated clients. It never changes.
    pub id: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// Whether its handler's answer tells of a change that is in the audit log.
    pub audited: bool,
}

/// Describes an operation, as its handler's type and its line in the list of routes say.
type Describer = Box<dyn Fn(&mut Operation<'_>)>;

/// The routes of one subject.
pub(crate) struct Room {
    /// The subject, for people.
    pub(crate) title: &'static str,
    router: Router<App>,
    routes: Vec<(Route, Describer)>,
}

/// Lists the routes of a room: `METHOD "path" Right handler => operationId "Summary";`, and after `!` the codes of problems that
/// the record's state may be the reason of. Problems of keys, paths, queries, headers and bodies follow from the handler's type.
/// A line whose right is not that of its handler's guard does not compile.
macro_rules! room {
    ($title:literal { $(
        $method:ident $path:literal $right:ident $handler:path => $id:ident $summary:literal $(! $($code:ident),+)? ;
    )* }) => {
        $crate::room::Room::new($title)
            $( .add::<{ $crate::auth::Right::$right as u8 }, _, _>(
                axum::routing::MethodFilter::$method,
                $crate::room::Line {
                    method: http::Method::$method,
                    path: $path,
                    id: stringify!($id),
                    summary: $summary,
                    refuses: &[$( $($crate::problem::Code::$code),+ )?],
                },
                $handler,
            ) )*
    };
}

pub(crate) use room;

/// A line in the list of routes.
pub(crate) struct Line {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) refuses: &'static [Code],
}

impl Room {
    /// A room without routes.
    pub(crate) fn new(title: &'static str) -> Self {
        Self { title, router: Router::new(), routes: Vec::new() }
    }

    /// Adds a route whose line says that it demands `RIGHT`.
    pub(crate) fn add<const RIGHT: u8, H, T>(
        mut self,
        filter: MethodFilter,
        line: Line,
        handler: H,
    ) -> Self
    where
        H: Handler<T, App> + Describe<T>,
        T: 'static,
    {
        const {
            assert!(
                RIGHT == H::RIGHT as u8,
                "the line of a route has another right than its handler's guard"
            )
        };
        let Line { method, path, id, summary, refuses } = line;
        let is_own = Document::takes_key(&H::describe);
        let repeats = Repeats::of(&method, id, H::RIGHT, is_own);
        let describer: Describer = Box::new(move |operation| {
            H::describe(operation);
            operation.repeats(repeats);
            operation.demands(H::RIGHT);
            operation.may_refuse(refuses);
            operation.may_refuse(&[Code::RateLimited]);
        });
        let mut service = match repeats {
            Repeats::AnsweredAgain => on(filter, Once { handler, operation: id, right: H::RIGHT }),
            Repeats::RunAgain | Repeats::OfHandler => on(filter, handler),
        };
        if cfg!(debug_assertions) {
            service = checked(service, id, Document::statuses(&describer));
        }
        self.router = self.router.route(path, service);
        let (right, reach, audited) = (H::RIGHT, reach(&method, path), H::AUDITED);
        self.routes.push((Route { method, path, right, reach, id, summary, audited }, describer));
        self
    }

    /// The room as a service.
    pub(crate) fn into_router(self) -> Router<App> {
        self.router
    }

    /// The list of the room's routes.
    pub(crate) fn into_routes(self) -> Vec<Route> {
        self.routes.into_iter().map(|(route, _)| route).collect()
    }

    /// The routes, each with its description.
    pub(crate) fn described(&self) -> impl Iterator<Item = (&Route, &dyn Fn(&mut Operation<'_>))> {
        self.routes.iter().map(|(route, describer)| (route, &**describer))
    }
}

/// In debug builds, a status that the description lacks is an internal error: every test checks the description.
fn checked(
    service: MethodRouter<App>,
    id: &'static str,
    statuses: BTreeSet<u16>,
) -> MethodRouter<App> {
    let statuses = Arc::new(statuses);
    service.layer(middleware::from_fn(move |request: Request, next: Next| {
        let statuses = statuses.clone();
        async move {
            let response: Response = next.run(request).await;
            let status = response.status().as_u16();
            if statuses.contains(&status) {
                return response;
            }
            let cause = format!("{id} answered {status}, which its description lacks");
            Problem::internal(&cause).into_response()
        }
    }))
}
