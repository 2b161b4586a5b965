//! Instances of classes whose members are slots, made without their `__init__`. Python has no quicker way to an object, and none
//! that sets the members of one that can't be changed.

#![allow(unsafe_code, reason = "pyo3 has no safe call that allocates an instance or sets a member by its descriptor")]

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// A class, and its slots in order.
pub(crate) struct Slots {
    class: Py<PyType>,
    slots: Vec<(Py<PyAny>, ffi::descrsetfunc)>,
}

impl Slots {
    pub(crate) fn new(class: &Bound<'_, PyType>, names: &[String]) -> PyResult<Slots> {
        let slots = names.iter().map(|name| slot(class, name)).collect::<PyResult<_>>()?;
        Ok(Slots { class: class.clone().unbind(), slots })
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// An instance, none of whose members is set.
    pub(crate) fn instance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: a class that Python code made has its allocator in this slot; it gives a new reference, or null and an exception.
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_GenericAlloc(self.class.as_ptr().cast(), 0)) }
    }

    /// Sets a member.
    pub(crate) fn set(&self, instance: &Bound<'_, PyAny>, index: usize, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some((descriptor, set)) = self.slots.get(index) else { return Ok(()) };
        // SAFETY: the function is that of the descriptor's own type, which checks what the instance is and takes a reference of its own.
        match unsafe { set(descriptor.as_ptr(), instance.as_ptr(), value.as_ptr()) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(instance.py())),
        }
    }
}

fn slot(class: &Bound<'_, PyType>, name: &str) -> PyResult<(Py<PyAny>, ffi::descrsetfunc)> {
    let descriptor = class.getattr(PyString::intern(class.py(), name))?;
    // SAFETY: the slot is a function of this type wherever there is one, and a type outlives its instances.
    let set = unsafe {
        let set = ffi::PyType_GetSlot(ffi::Py_TYPE(descriptor.as_ptr()), ffi::Py_tp_descr_set);
        std::mem::transmute::<*mut std::ffi::c_void, Option<ffi::descrsetfunc>>(set)
    };
    let set = set.ok_or_else(|| PyTypeError::new_err(format!("`{name}` is no slot")))?;
    Ok((descriptor.unbind(), set))
}
