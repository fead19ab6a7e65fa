# %% [markdown]
# # The plug-in in a PyTorch training loop
#
# NegScale is a loss on features: it pushes samples of unrelated classes apart and keeps those of related classes from becoming too
# similar. It needs the features before the last layer, the labels, and a class tree that says which classes are related. Your
# training loop changes by two lines.
#
#     pip install 'negscale[torch]' scikit-learn pandas

# %%
import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_digits
from torch import nn

import negscale
from negscale.torch import NegScaleLoss, attach

torch.set_num_threads(1)

# %% [markdown]
# ## Classes, and which of them are related
# Handwritten digits of 8 x 8 pixels. Digits have no natural tree, so we write one by their strokes: closed loops, straight strokes, open
# curves. Two classes of one group are 2 edges apart (related, at most `eta_min`), others 4 (unrelated, more than `eta_max`).

# %%
tree = negscale.Taxonomy.from_indented(
    """strokes
  loops
    0
    6
    8
    9
  straight
    1
    4
    7
  curves
    2
    3
    5
""",
    class_names=[str(digit) for digit in range(10)],
)
thresholds = {"eta_min": 2, "eta_max": 3}
pd.DataFrame(tree.distances(), index=tree.class_names, columns=tree.class_names)

# %% [markdown]
# ## Data with wrong labels
# 40 % of the training labels are drawn anew, the same ones on every run.

# %%
digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.target))
train, test = order[:1000], order[1000:]
pixels = torch.tensor(digits.data / 16, dtype=torch.float32)
truth = digits.target[train]
noise = negscale.noise(truth, "sym:0.4", seed=0)
given = torch.tensor(np.asarray(noise))
print(f"{(given.numpy() != truth).mean():.1%} of the labels are wrong")

# %% [markdown]
# ## The loop
# The plain loop, with the plug-in where `plugin` is given: one line to compute the loss, one to add it. `logits=` tells it how sure the
# network is of each sample; no gradient goes through that.

# %%
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128))
        self.head = nn.Linear(128, 10)

    def forward(self, rows):
        features = self.body(rows)  # before any ReLU, so that they can point away from each other
        return features, self.head(torch.relu(features))


def fit(plugin=None, seed=0, epochs=40):
    torch.manual_seed(seed)
    network, history = Network(), []
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(epochs):
        for batch in torch.randperm(len(train)).split(100):
            features, logits = network(pixels[train][batch])
            loss = nn.functional.cross_entropy(logits, given[batch])
            if plugin is not None:
                loss = loss + plugin(features, given[batch], logits=logits)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        history.append({"epoch": epoch + 1, "loss": loss.item()} | ({} if plugin is None else plugin.terms.to_dict()))
    return network, pd.DataFrame(history).set_index("epoch")


network, history = fit(NegScaleLoss(tree, **thresholds))
history[["loss", "snop_global", "snop_local", "dcsa", "unrelated_pairs", "related_pairs"]].iloc[[0, 9, 19, 39]].round(4)

# %% [markdown]
# ## What did it do?
# To the features: the mean cosine between samples of unrelated and of related classes, by true labels. To the accuracy: five seeds with
# and without, since one says nothing.

# %%
def measured(network):
    with torch.no_grad():
        features, logits = network(pixels[test])
    unit, labels = nn.functional.normalize(features), torch.tensor(digits.target[test])
    cosines, distances = unit @ unit.T, torch.tensor(tree.distances())[labels][:, labels]
    return {
        "test accuracy": (logits.argmax(1) == labels).double().mean().item(),
        "cosine, unrelated": cosines[distances > thresholds["eta_max"]].mean().item(),
        "cosine, related": cosines[(distances > 0) & (distances <= thresholds["eta_min"])].mean().item(),
        "cosine, same class": cosines[distances == 0].mean().item(),
    }


choices = {
    "cross-entropy alone": lambda: None,
    "with the plug-in": lambda: NegScaleLoss(tree, **thresholds),
    "with the plug-in, weight 5": lambda: NegScaleLoss(tree, lam=5.0, mu=5.0, **thresholds),
}
rows = [{"loss": name, "seed": seed} | measured(fit(make(), seed)[0]) for name, make in choices.items() for seed in range(5)]
runs = pd.DataFrame(rows).set_index(["loss", "seed"])
runs.groupby("loss", sort=False).mean().round(3)

# %%
gain = runs["test accuracy"].unstack("loss")
gain = gain.sub(gain["cross-entropy alone"], axis=0)[list(choices)[1:]] * 100
pd.DataFrame({"mean gain, points": gain.mean(), "standard error": gain.std() / np.sqrt(len(gain))}).round(2)

# %% [markdown]
# The features have moved as they should: unrelated classes are closer to orthogonal, related ones no longer alike. Accuracy has not
# followed: here there is no gain to be seen, and at weight 5 a loss. That is what we found in most settings (the book's page "Results"), so
# measure on your data. Before you believe a gain of your own, compare with the same weights and a permuted tree (`tree.permuted(seed)`), and with a tuned weight
# decay: the book says how ("Before you claim a gain").
#
# ## Without touching the loss
# `attach` puts the plug-in on a layer of a model. It sees the features as they pass; wrap the criterion, and the loop stays as it is.

# %%
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
handle = attach(model, "2", tree, **thresholds)
criterion = handle.wrap(nn.CrossEntropyLoss())
optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for batch in torch.randperm(len(train)).split(100):
    loss = criterion(model(pixels[train][batch]), given[batch])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
handle.remove()
handle.terms
