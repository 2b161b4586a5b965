//! Instances of classes whose members are slots, made without their `__init__`. Python has no faster way to make an object, and no other
//! one that sets the members of an immutable one.

#![allow(unsafe_code, reason = "pyo3 has no safe call that allocates an instance or sets a member of one")]

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// A class, and the places of its slots in its instances, in order.
pub(crate) struct Slots {
    class: Py<PyType>,
    offsets: Vec<usize>,
}

impl Slots {
    pub(crate) fn new(class: &Bound<'_, PyType>, names: &[String]) -> PyResult<Slots> {
        let offsets = names.iter().map(|name| offset(class, name)).collect::<PyResult<_>>()?;
        Ok(Slots { class: class.clone().unbind(), offsets })
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// An instance, none of whose members is set.
    pub(crate) fn instance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: a class that Python code made has its allocator in this slot; it gives a new reference, or null and an exception.
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_GenericAlloc(self.class.as_ptr().cast(), 0)) }
    }

    /// Sets a member of an instance of this class.
    pub(crate) fn set(&self, instance: &Bound<'_, PyAny>, index: usize, value: Bound<'_, PyAny>) -> PyResult<()> {
        let Some(offset) = self.offsets.get(index) else { return Ok(()) };
        // SAFETY: every object has a type.
        if unsafe { ffi::Py_TYPE(instance.as_ptr()) } != self.class.as_ptr().cast() {
            return Err(PyTypeError::new_err("another class has other slots"));
        }
        // SAFETY: instances of this class have a slot there, which holds a reference or null. The old value is dropped last, since that may
        // run any code.
        let before = unsafe {
            let slot = instance.as_ptr().byte_add(*offset).cast::<*mut ffi::PyObject>();
            Bound::from_owned_ptr_or_opt(instance.py(), slot.replace(value.into_ptr()))
        };
        drop(before);
        Ok(())
    }
}

/// The place of a slot in the instances of a class.
fn offset(class: &Bound<'_, PyType>, name: &str) -> PyResult<usize> {
    // The class of the hierarchy that names the slot.
    for kind in class.mro() {
        let kind = kind.cast_into::<PyType>()?;
        // SAFETY: a heap type has its members there, the last one without a name; Python makes one of each name in `__slots__`.
        let mut member = unsafe { ffi::PyType_GetSlot(kind.as_ptr().cast(), ffi::Py_tp_members).cast::<ffi::PyMemberDef>() };
        // SAFETY: as before; each of them is initialized, and its name is a C string.
        while let Some(slot) = unsafe { member.as_ref() }.filter(|slot| !slot.name.is_null()) {
            let is_it = unsafe { std::ffi::CStr::from_ptr(slot.name) }.to_bytes() == name.as_bytes();
            if is_it && slot.type_code == ffi::Py_T_OBJECT_EX && slot.flags & ffi::Py_RELATIVE_OFFSET == 0 {
                return usize::try_from(slot.offset).map_err(|_| PyTypeError::new_err(format!("`{name}` is before its object")));
            }
            // SAFETY: it has a name, so it is not the last one.
            member = unsafe { member.add(1) };
        }
    }
    Err(PyTypeError::new_err(format!("`{name}` is no slot")))
}
