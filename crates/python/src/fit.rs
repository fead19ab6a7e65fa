//! Classifiers that learn from labels of which some are wrong, and models as files or as bytes.

use crate::errors::to_python;
use negscale_audit::Finding;
use negscale_data::{Dataset, Splits};
use negscale_nets::model::Model;
use negscale_run::recipe::{Layers, Recipe};
use negscale_run::{Fitted, Stop};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
