"""The package as a whole."""

import subprocess
import sys
from importlib import metadata, resources

import pytest

import negscale


def test_importing_it_imports_none_of_the_libraries_that_it_can_work_with():
    program = "import sys, negscale; print([name for name in ('torch', 'pandas', 'polars', 'sklearn', 'pyarrow', 'IPython', 'networkx', 'ray') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_it_says_its_version_and_that_it_is_typed():
    assert metadata.version("negscale") == negscale.__version__
    assert resources.files("negscale").joinpath("py.typed").is_file()
    assert resources.files("negscale").joinpath("_negscale.pyi").is_file()


def test_it_needs_numpy_alone():
    needed = [line for line in metadata.requires("negscale") or [] if "extra ==" not in line]
    assert [line.split(">")[0].split("=")[0].strip() for line in needed] == ["numpy"]


@pytest.mark.parametrize("name", negscale.__all__)
def test_what_is_exported_is_there_and_says_that_it_is_of_the_package(name):
    thing = getattr(negscale, name)
    assert getattr(thing, "__module__", "negscale").partition(".")[0] in ("negscale", "builtins")
    assert name in dir(negscale)


def test_errors_are_of_one_family_and_are_caught_as_what_python_knows():
    assert issubclass(negscale.InputError, (negscale.NegScaleError, ValueError))
    assert issubclass(negscale.InputError, ValueError) and issubclass(negscale.FileError, OSError)
    assert issubclass(negscale.FileError, negscale.NegScaleError) and not issubclass(negscale.NegScaleError, ValueError)
