# %% [markdown]
# # Which labels of a table are wrong?
#
# A table of measurements, a label for every row, and some doubt about the labels. This notebook finds the doubtful ones, says why,
# how many there are and whose they are, corrects them, and trains a classifier that lives with those that remain.
#
#     pip install 'negscale[sklearn,pandas]'

# %%
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

import negscale

pd.set_option("display.max_colwidth", 120)

# %% [markdown]
# ## The table
# Measurements of cell nuclei, 30 numbers for each of 569 samples, with a diagnosis that we take to be right. To have something to find,
# the training rows are labelled once more by three people, of whom one is careless: "Kim" gets every fifth label wrong, the others one in fifty.

# %%
data = load_breast_cancer(as_frame=True)
diagnosis = data.target.map(dict(enumerate(data.target_names)))
table, test, truth, test_truth = train_test_split(data.data, diagnosis, test_size=0.3, random_state=0)

draw = np.random.default_rng(0)
person = draw.choice(["Ada", "Ben", "Kim"], len(table))
is_wrong = draw.random(len(table)) < np.where(person == "Kim", 0.2, 0.02)
other = {"benign": "malignant", "malignant": "benign"}
table = table.assign(person=person, diagnosis=truth.mask(is_wrong, truth.map(other)))
print(f"{len(table)} rows, {is_wrong.sum()} wrong labels")
table.iloc[:3, -4:]

# %% [markdown]
# ## The audit
# Features and labels are enough. Every label is judged by models that never saw it, so nothing here depends on a test set.
# `sources` says where labels come from; leave it out if they have one source.

# %%
measurements = table.drop(columns=["person", "diagnosis"])
audit = negscale.audit(measurements, table["diagnosis"], sources=table["person"])
audit

# %% [markdown]
# The same as a table, with the index of the one that was handed in: sort it, join it, send the top of it to somebody who knows.

# %%
found = audit.to_pandas(ranked=True)
found[["given", "suggested", "score", "flag", "reasons"]].head(8)

# %% [markdown]
# ## How many, and whose?
# The estimate comes with an interval. `audit.flags` marks as many labels as are estimated to be wrong; counted by person:

# %%
low, high = audit.interval
print(f"estimated {audit.rate:.1%} ({low:.1%} to {high:.1%}), in truth {is_wrong.mean():.1%}")
by_person = pd.DataFrame({"labels": 1, "flagged": audit.flags, "wrong": is_wrong}).groupby(person).sum()
by_person.assign(share_flagged=(by_person.flagged / by_person.labels).round(3))

# %% [markdown]
# Since the truth is known here, so is how good the list is.

# %%
hits = is_wrong[audit.flags].mean(), audit.flags[is_wrong].mean()
print(f"{hits[0]:.0%} of the flags are right, and they are {hits[1]:.0%} of the wrong labels")

# %% [markdown]
# ## What to do about it
# `audit.corrected` has the suggestion where it is clearly the better label, and the given one elsewhere. Gradient-boosted trees on the
# labels as given, as corrected, and as they are in truth, scored on test rows with labels that are right:

# %%
def accuracy(labels, seeds=range(5)):
    fits = (HistGradientBoostingClassifier(max_iter=50, random_state=seed).fit(measurements, labels) for seed in seeds)
    return np.mean([fit.score(test, test_truth) for fit in fits])


pd.Series({name: accuracy(labels) for name, labels in {"given": table["diagnosis"], "corrected": audit.corrected, "true": truth}.items()}).round(3)

# %% [markdown]
# ## Or a classifier that expects wrong labels
# `NoisyLabelClassifier` is an estimator of scikit-learn. It trains on the labels as given with a method that sorts them out
# meanwhile, and says afterwards what it thinks of each.

# %%
from negscale.sklearn import NoisyLabelClassifier

classifier = NoisyLabelClassifier(random_state=0).fit(measurements, table["diagnosis"])
print(f"test accuracy {classifier.score(test, test_truth):.3f}")
said = pd.DataFrame(
    {"given": table["diagnosis"], "suggested": classifier.suggested_, "quality": classifier.label_quality_, "in truth": truth}
)
said.sort_values("quality").head(5)
