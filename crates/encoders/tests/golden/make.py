#!/usr/bin/env python3
"""Makes files of weights for tests, in the format of PyTorch before 1.6: python make.py (needs torch).

legacy.pth   the first tensors of EfficientNet-Lite0 with made-up numbers
hostile.pth  the same, with an object beside them that runs a command when it is unpickled

efficientnet_lite0.f32 beside them is by `benches/torch/pictures.py WEIGHTS.pth --golden efficientnet_lite0.f32`.
"""
import os

import torch


class Hostile:
    def __reduce__(self):
        return os.system, ("touch /tmp/negscale-hostile",)


tensors = {"_conv_stem.weight": torch.arange(864.0).reshape(32, 3, 3, 3) / 864}
tensors |= {f"_bn0.{part}": torch.arange(32.0) + n for n, part in enumerate(["weight", "bias", "running_mean", "running_var"])}
torch.save(tensors, "legacy.pth", _use_new_zipfile_serialization=False)
torch.save(tensors | {"extra": Hostile()}, "hostile.pth", _use_new_zipfile_serialization=False)
