"""Examples in docstrings do what they show, and everything public has a docstring."""

import doctest
import importlib.util
import inspect

import pytest

import negscale

#: Parts of the package whose examples need more than numpy.
NEEDS = {"negscale.torch": "torch", "negscale.sklearn": "sklearn"}


def modules():
    names = [name for name, needed in NEEDS.items() if importlib.util.find_spec(needed)]
    return [negscale, *(importlib.import_module(name) for name in names)]


def public():
    """What is exported and its members, by name; each once."""
    for module in modules():
        yield module.__name__, module
        for name in module.__all__:
            there = getattr(module, name)
            yield f"{module.__name__}.{name}", there
            if inspect.isclass(there):
                for member, value in vars(there).items():
                    value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
                    if not member.startswith("_") and (inspect.isroutine(value) or inspect.isgetsetdescriptor(value)):
                        yield f"{module.__name__}.{name}.{member}", value


ALL = {name: thing for name, thing in public() if not name.endswith("__version__")}


@pytest.mark.parametrize("name", ALL)
def test_it_has_a_docstring(name):
    assert inspect.getdoc(ALL[name]), name


@pytest.mark.parametrize("name", [name for name, thing in ALL.items() if ">>>" in (inspect.getdoc(thing) or "")])
def test_its_example_does_what_it_shows(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(ALL[name])
    example = doctest.DocTestParser().get_doctest(text, {"negscale": negscale}, name, None, 0)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(example, out=said.append)
    assert runner.tries and not runner.failures, "".join(said)


def test_every_function_shows_by_an_example_how_it_is_called():
    functions = [name for name, thing in ALL.items() if inspect.isfunction(thing) and name.count(".") == 1]
    assert functions and not [name for name in functions if ">>>" not in (inspect.getdoc(ALL[name]) or "")]
