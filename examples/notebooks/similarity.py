# %% [markdown]
# # Is dissimilarity invariant under label noise?
#
# The idea behind NegScale: wrong labels disturb which samples are *similar* more than which are *dissimilar*. Here that is measured on
# features of any origin: mean and spread of the cosine over all pairs of samples, by how their classes are related and by whether their
# labels are right (the paper's Table 1 and Figures 2 and 3), exactly, in time linear in the number of samples.
#
#     pip install 'negscale[torch,pandas]'

# %%
import numpy as np
import pandas as pd
import torch
from torch import nn

import negscale

torch.set_num_threads(1)

# %% [markdown]
# ## Samples whose classes form a tree
# Eight classes in two branches of two twigs each. The mean of a class is a step of the branch, a step of the twig and a step of its
# own, so relatives lie near each other. 3,000 samples in 40 dimensions.

# %%
tree = negscale.Taxonomy.from_indented(
    """things
  living
    animals
      cat
      dog
    plants
      oak
      rose
  made
    vehicles
      bus
      lorry
    furniture
      chair
      table
"""
)
draw = np.random.default_rng(0)
step = {}
means = []
for name in tree.class_names:
    twig, branch, *_ = tree.ancestors(name)
    means.append(sum(step.setdefault(node, draw.normal(size=40)) for node in (name, twig, branch)))
truth = np.arange(3000) % 8
samples = torch.tensor(np.array(means)[truth] + 1.5 * draw.normal(size=(3000, 40)), dtype=torch.float32)
thresholds = {"eta_min": 3, "eta_max": 5}
print(tree.summary(**thresholds))

# %% [markdown]
# ## The same network, trained on right and on wrong labels
# Two kinds of wrong labels, 40 % each: drawn from all classes, and taken from the sibling in the tree, as people mistake what looks alike.

# %%
given = {
    "right": truth,
    "anywhere": negscale.noise(truth, "sym:0.4", seed=0, taxonomy=tree).labels,
    "of the sibling": negscale.noise(truth, "asym-super:0.4", seed=0, taxonomy=tree).labels,
}
print({name: f"{(labels != truth).mean():.1%} wrong" for name, labels in given.items()})


def trained(labels, epochs=30, seed=0):
    """Features of all samples by a network that has learnt these labels."""
    torch.manual_seed(seed)
    body = nn.Sequential(nn.Linear(40, 128), nn.ReLU(), nn.Linear(128, 32))
    head = nn.Linear(32, 8)
    optimiser = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
    labels = torch.tensor(labels)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels)).split(100):
            loss = nn.functional.cross_entropy(head(body(samples[batch])), labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with torch.no_grad():
        return body(samples).numpy()


features = {name: trained(labels) for name, labels in given.items()}

# %% [markdown]
# ## Similarity of all pairs
# All four and a half million pairs of the run whose labels are wrong anywhere. The measure is (1 + cosine)/2, as in the paper. "cross-noise"
# pairs have the same given label and different true ones.

# %%
negscale.similarity(features["anywhere"], given["anywhere"], truth, tree, **thresholds)

# %% [markdown]
# ## What noise has changed
# With `clean_features`, those of the run on right labels, every pair is compared with itself: the change of the mean, and how far single
# pairs moved (root mean square of the change of the cosine, and correlation). Means can stay where they are while pairs move.

# %%
def changes(name):
    found = negscale.similarity(features[name], given[name], truth, tree, clean_features=features["right"], **thresholds)
    table = found.to_pandas().query("pairs == 'all' and by == 'true'").set_index("relation")
    names = {"clean": "mean, right labels", "normalised": "mean, wrong labels", "change": "change of the mean"}
    return table[["clean", "normalised", "change", "rms", "correlation"]].rename(columns=names)


pd.concat({name: changes(name) for name in ["anywhere", "of the sibling"]}).round(3)

# %% [markdown]
# Three things can be read off:
#
# - The mean of unrelated pairs moves least, that of pairs of one class most: what the paper calls dissimilarity invariance.
# - With labels of the sibling, the mean of related pairs moves most towards more similar: such noise makes relatives look alike.
# - Pair by pair little stays in place: the correlation is low for every relation. The mean is invariant, the pairs are not.
#
# ## Do wrong labels follow the tree?
# A question about labels alone, answered against what chance would give.

# %%
for name in ["anywhere", "of the sibling"]:
    print(f"{name}: {negscale.similarity(features[name], given[name], truth, tree, **thresholds).verdict}")

# %% [markdown]
# The command does the same for runs on disk and adds the paper's bounds as measured: `negscale analyse RUN --clean OTHER`.
