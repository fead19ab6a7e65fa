"""Equations of the book as MathML: a preprocessor of mdBook, named in book.toml.

Pages have equations as $...$ and $$...$$ in a small part of LaTeX, which repository hosts show as they are. Here they become MathML, so that
the built book needs neither script nor network. A command that is not in the tables below ends the build and is named with its page.

    python3 equations.py '\\frac{1}{2} \\sum_i x_i'      # one equation, to try
"""
import json
import re
import sys

SYMBOLS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "Delta": "Δ", "epsilon": "ε", "eta": "η", "theta": "θ", "lambda": "λ", "mu": "μ", "nu": "ν",
    "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "Gamma": "Γ", "Lambda": "Λ", "ell": "ℓ",
}
OPERATORS = {
    "in": "∈", "ge": "≥", "le": "≤", "ne": "≠", "approx": "≈", "sim": "∼", "propto": "∝", "leftarrow": "←", "to": "→", "times": "×", "cdot": "·",
    "cup": "∪", "cap": "∩", "mid": "|", "|": "‖", "dots": "…", "partial": "∂",
}
FENCES = {
    "(": "(", ")": ")", "[": "[", "]": "]", "|": "|", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉", "langle": "⟨", "rangle": "⟩",
    "{": "{", "}": "}",
}
FUNCTIONS = {"log", "exp", "cos", "max", "min", "arg"}
ACCENTS = {"tilde": "~", "hat": "^", "bar": "¯", "overline": "¯"}
SPACES = {",": 0.17, ";": 0.28, " ": 0.25, "quad": 1, "qquad": 2}
BLACKBOARD = {"R": "ℝ", "E": "𝔼"}
TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[0-9]+(?:[.,][0-9]+)*|\s+|.", re.DOTALL)


def text(content):
    """Characters that neither HTML nor Markdown takes for its own."""
    return "".join(f"&#{ord(c)};" if c in "<>&*_[]|~`\\" else c for c in content)


def operator(sign, **attributes):
    extra = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f"<mo{extra}>{text(sign)}</mo>"


class Equation:
    """A recursive-descent reader; every method returns MathML."""

    def __init__(self, latex):
        self.tokens = [token for token in TOKEN.findall(latex) if not token.isspace()]
        self.place = 0

    def next(self):
        if self.place == len(self.tokens):
            raise ValueError("ends too early")
        self.place += 1
        return self.tokens[self.place - 1]

    def ahead(self):
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def row(self, end=None):
        parts = []
        while self.ahead() != end:
            parts.append(self.scripted())
        if end is not None:
            self.next()
        return "<mrow>" + "".join(parts) + "</mrow>"

    def group(self):
        """An argument: {...}, or one sign; of a number its first digit."""
        token = self.next()
        if token == "{":
            return self.row("}")
        if token[0].isdigit() and len(token) > 1:
            self.tokens.insert(self.place, token[1:])
            return f"<mn>{token[0]}</mn>"
        return self.atom(token)[0]

    def words(self):
        """The bare text of {...}."""
        if self.next() != "{":
            raise ValueError("needs braces after a name")
        found = ""
        while self.ahead() != "}":
            found += self.next()
        self.next()
        return found

    def scripted(self):
        base, limits = self.atom(self.next())
        below, above = None, ""
        while self.ahead() in ("_", "^", "'"):
            sign = self.next()
            if sign == "_":
                below = self.group()
            else:
                above += operator("′") if sign == "'" else self.group()
        if below is None and not above:
            return base
        above = f"<mrow>{above}</mrow>"
        low, high, both = ("munder", "mover", "munderover") if limits else ("msub", "msup", "msubsup")
        if below is None:
            return f"<{high}>{base}{above}</{high}>"
        if above == "<mrow></mrow>":
            return f"<{low}>{base}{below}</{low}>"
        return f"<{both}>{base}{below}{above}</{both}>"

    def atom(self, token):
        """One thing without its indices, and whether these stand below and above it."""
        name = token[1:] if token[0] == "\\" else None
        if token == "{":
            return self.row("}"), False
        if token[0].isdigit():
            return f"<mn>{token}</mn>", False
        if name is None and token.isalpha():
            return f"<mi>{token}</mi>", False
        if name is None and token in "}_^&#%$~":
            raise ValueError(f"has a stray {token}")
        if name is None and token not in FENCES:
            return operator({"-": "−"}.get(token, token)), False
        if name in SYMBOLS:
            return f"<mi>{SYMBOLS[name]}</mi>", False
        if name in OPERATORS:
            return operator(OPERATORS[name]), False
        if (name or token) in FENCES:
            return operator(FENCES[name or token], stretchy="false", lspace="0", rspace="0"), False
        if name in SPACES:
            return f'<mspace width="{SPACES[name]}em"/>', False
        if name == "sum":
            return operator("∑"), True
        if name in FUNCTIONS or name == "operatorname":
            word = self.words() if name == "operatorname" else name
            near = "0" if self.ahead() in ("(", "_", "^") else "0.17em"
            limits = {"movablelimits": "true"} if name != "log" else {}
            return operator(word, form="prefix", lspace="0.17em", rspace=near, **limits), name in ("max", "min", "operatorname")
        if name in ("frac", "tfrac"):
            above, below = self.group(), self.group()
            fraction = f"<mfrac>{above}{below}</mfrac>"
            return fraction if name == "frac" else f'<mstyle displaystyle="false">{fraction}</mstyle>', False
        if name == "sqrt":
            return f"<msqrt>{self.group()}</msqrt>", False
        if name in ACCENTS:
            return f'<mover accent="true">{self.group()}{operator(ACCENTS[name], stretchy="true" if name == "overline" else "false")}</mover>', False
        if name in ("mathrm", "text"):
            return f'<mi mathvariant="normal">{text(self.words())}</mi>', False
        if name == "mathbb":
            return f"<mi>{BLACKBOARD[self.words()]}</mi>", False
        if name in ("big", "Big"):
            sign = self.next().lstrip("\\")
            size = "1.2em" if name == "big" else "2em"
            return operator(FENCES[sign], stretchy="true", minsize=size, maxsize=size, lspace="0", rspace="0"), False
        raise ValueError(f"uses {token}, which equations.py does not know")


def mathml(latex, display):
    try:
        body = Equation(latex).row()
    except (ValueError, KeyError) as error:
        raise ValueError(f"the equation {latex.strip()!r} {error}") from error
    block = ' display="block"' if display else ""
    return f"<math{block}>{body}</math>"


# Code first, so that a dollar in it is left alone.
PIECE = re.compile(r"^(?P<fence>[ \t]*(```+|~~~+)).*?^[ \t]*\2[ \t]*$|(?P<code>`+).+?(?P=code)|\$\$(?P<block>.+?)\$\$|\$(?P<inline>[^$\s](?:[^$\n]*[^$\s])?)\$", re.DOTALL | re.MULTILINE)


def page(content):
    def piece(match):
        if match["block"] or match["inline"]:
            return mathml(match["block"] or match["inline"], match["block"] is not None)
        return match[0]

    return PIECE.sub(piece, content)


def pages(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            try:
                chapter["content"] = page(chapter["content"])
            except ValueError as error:
                sys.exit(f"{chapter['path']}: {error}")
            pages(chapter["sub_items"])


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "supports":
        return
    if len(sys.argv) > 1:
        print(mathml(sys.argv[1], True))
        return
    _, book = json.load(sys.stdin)
    pages(book["items"] if "items" in book else book["sections"])
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
