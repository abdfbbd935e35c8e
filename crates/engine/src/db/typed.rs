//! Access to values by type, with Redis's error for the wrong one.

use super::Db;
use crate::error::{Result, WRONG_TYPE};
use crate::value::Typed;

impl Db {
    /// A key's value as a type; `None` if the key does not exist.
    pub fn read<T: Typed>(&mut self, key: &[u8]) -> Result<Option<&T>> {
        match self.find(key) {
            None => Ok(None),
            Some(index) => T::of(self.space().value(index)).map(Some).ok_or(WRONG_TYPE),
        }
    }

    /// A key's value as a type, to change; tell [`Db::changed`] afterwards.
    pub fn write<T: Typed>(&mut self, key: &[u8]) -> Result<Option<&mut T>> {
        match self.find(key) {
            None => Ok(None),
            Some(index) => T::of_mut(self.space_mut().value_mut(index)).map(Some).ok_or(WRONG_TYPE),
        }
    }

    /// A key's value as a type, created empty if the key does not exist; tell [`Db::changed`]
    /// afterwards and leave no empty collection behind.
    pub fn create<T: Typed>(&mut self, key: &[u8]) -> Result<&mut T> {
        let index = match self.find(key) {
            Some(index) => index,
            None => self.space_mut().set(key, T::empty()),
        };
        T::of_mut(self.space_mut().value_mut(index)).ok_or(WRONG_TYPE)
    }
}
