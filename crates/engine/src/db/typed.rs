//! Access to values by type, with Redis's `WRONGTYPE` error.

use super::Db;
use crate::error::{Result, WRONG_TYPE};
use crate::value::Typed;

impl Db {
    /// A key's value of type `T`; `None` if the key does not exist.
    pub(crate) fn read<T: Typed>(&mut self, key: &[u8]) -> Result<Option<&T>> {
        match self.find(key) {
            None => Ok(None),
            Some(index) => T::of(self.space().value(index)).map(Some).ok_or(WRONG_TYPE),
        }
    }

    /// A key's value of type `T`, mutable; call [`Db::changed`] after changing it.
    pub(crate) fn write<T: Typed>(&mut self, key: &[u8]) -> Result<Option<&mut T>> {
        match self.find(key) {
            None => Ok(None),
            Some(index) => T::of_mut(self.space_mut().value_mut(index)).map(Some).ok_or(WRONG_TYPE),
        }
    }

    /// A key's value of type `T`, mutable, created empty if the key does not exist. Call
    /// [`Db::changed`] after changing it, and leave no empty collection.
    pub(crate) fn create<T: Typed>(&mut self, key: &[u8]) -> Result<&mut T> {
        let index = match self.find(key) {
            Some(index) => index,
            None => self.space_mut().set(key, T::empty()),
        };
        T::of_mut(self.space_mut().value_mut(index)).ok_or(WRONG_TYPE)
    }
}
