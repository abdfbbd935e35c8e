//! A room: the routes of one subject. Each route is listed with the right that its handler's type demands.

use axum::Router;
use axum::extract::State;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use http::Method;

use crate::app::App;
use crate::auth::{Guard, Right};

/// A route: method, path and the right it demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, with its parameters in braces.
    pub path: &'static str,
    /// The right that the handler's guard demands.
    pub right: Right,
}

/// The parameters of a handler that begins with a state and a guard.
pub(crate) trait Guarded {
    /// The right that the guard demands.
    const RIGHT: Right;
}

macro_rules! guarded {
    ($($rest:ident),*) => {
        impl<M, S, G: Guard, $($rest),*> Guarded for (M, State<S>, G, $($rest,)*) {
            const RIGHT: Right = G::RIGHT;
        }
    };
}

guarded!();
guarded!(A);
guarded!(A, B);
guarded!(A, B, C);

/// The routes of one subject.
#[derive(Default)]
pub(crate) struct Room {
    router: Router<App>,
    routes: Vec<Route>,
}

impl Room {
    /// Adds a GET route.
    pub(crate) fn get<H, T>(self, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: Guarded + 'static,
    {
        self.add(Method::GET, MethodFilter::GET, path, T::RIGHT, handler)
    }

    /// Adds a POST route.
    pub(crate) fn post<H, T>(self, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: Guarded + 'static,
    {
        self.add(Method::POST, MethodFilter::POST, path, T::RIGHT, handler)
    }

    /// Adds a PUT route.
    pub(crate) fn put<H, T>(self, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: Guarded + 'static,
    {
        self.add(Method::PUT, MethodFilter::PUT, path, T::RIGHT, handler)
    }

    /// Adds a PATCH route.
    pub(crate) fn patch<H, T>(self, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: Guarded + 'static,
    {
        self.add(Method::PATCH, MethodFilter::PATCH, path, T::RIGHT, handler)
    }

    /// Adds a DELETE route.
    pub(crate) fn delete<H, T>(self, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: Guarded + 'static,
    {
        self.add(Method::DELETE, MethodFilter::DELETE, path, T::RIGHT, handler)
    }

    /// Adds a GET route that needs no key.
    pub(crate) fn open<H, T>(self, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        self.add(Method::GET, MethodFilter::GET, path, Right::Nothing, handler)
    }

    fn add<H, T>(
        mut self,
        method: Method,
        filter: MethodFilter,
        path: &'static str,
        right: Right,
        handler: H,
    ) -> Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        self.router = self.router.route(path, on(filter, handler));
        self.routes.push(Route { method, path, right });
        self
    }

    /// The room as a service.
    pub(crate) fn into_router(self) -> Router<App> {
        self.router
    }

    /// The list of the room's routes.
    pub(crate) fn into_routes(self) -> Vec<Route> {
        self.routes
    }
}
